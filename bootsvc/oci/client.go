package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// userAgent is what registries know Ingot as.
const userAgent = "ingot"

const dockerHubHost = "registry-1.docker.io"

// get asks a registry for something of r's repository (distribution specification v1.1,
// "Pull"). The answer is 200, or 206 when header asks for a part.
func (i *Images) get(ctx context.Context, r model.ImageReference, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(withLocal(ctx, r.Registry), http.MethodGet, i.base(r).JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	resp, err := i.login.do(req, r)
	if err != nil {
		return nil, err
	}
	partial := resp.StatusCode == http.StatusPartialContent && header.Get("Range") != ""
	if resp.StatusCode != http.StatusOK && !partial {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half of it may still say enough
		answer := &statusError{code: resp.StatusCode, plain: req.URL.Scheme == "http"}
		answer.kind, answer.words = registryError(i.login.redacted(ctx, r, body))
		answer.away, _ = askedToWait(resp, time.Now())
		return nil, answer
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		resp.Body.Close()
		return nil, invalid("the registry sent it compressed (Content-Encoding %s), which was not asked for", syntax.Printable(coding))
	}
	return resp, nil
}

func (i *Images) base(r model.ImageReference) *url.URL {
	u := &url.URL{Scheme: "https", Host: r.Registry, Path: "/v2/" + r.Repository}
	if u.Host == model.DockerHub {
		u.Host = dockerHubHost
	}
	if i.plain(r.Registry) {
		u.Scheme = "http"
	}
	return u
}

var errorKinds = regexp.MustCompile(`^[A-Z_]{1,40}$`)

// maxWords bounds what is shown of a registry's own message, in bytes.
const maxWords = 200

// registryError returns the word by which a registry names an error, such as MANIFEST_UNKNOWN, and its message.
func registryError(body []byte) (kind, words string) {
	var answer struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer)
	if err != nil || len(answer.Errors) == 0 || !errorKinds.MatchString(answer.Errors[0].Code) {
		return "", ""
	}
	words = syntax.Printable(urls.ReplaceAllString(answer.Errors[0].Message, "(a URL)"))
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return answer.Errors[0].Code, words
}

// manifest fetches the manifest at a tag or digest and verifies it.
func (i *Images) manifest(ctx context.Context, r model.ImageReference, at string) (manifest, string, error) {
	if r.Layout != "" {
		return i.layouts.manifest(r, at)
	}
	resp, err := i.get(ctx, r, "manifests/"+at, http.Header{"Accept": {strings.Join(manifestTypes, ", ")}})
	if err != nil {
		return manifest{}, "", err
	}
	defer resp.Body.Close()
	if !model.IsImageDigest(at) && resp.Request.URL.Scheme == "http" && !i.plain(r.Registry) {
		return manifest{}, "", invalid("the registry leads to a place without TLS for what a tag means, which nothing would vouch for")
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	switch {
	case err != nil:
		return manifest{}, "", fmt.Errorf("read manifest: %w", err)
	case len(raw) > maxManifest:
		return manifest{}, "", invalid("the manifest is larger than %d bytes", maxManifest)
	}
	sum, err := manifestDigest(raw, at, resp.Header.Get("Docker-Content-Digest"))
	if err != nil {
		return manifest{}, "", err
	}
	m, err := parseManifest(raw, resp.Header.Get("Content-Type"))
	return m, sum, err
}

// manifestDigest returns the digest of a manifest: the one by which it was asked for, or
// else the one that the registry gives to what a tag means. Either must be right.
func manifestDigest(raw []byte, at, told string) (string, error) {
	sum := digest.Digest(at)
	if !model.IsImageDigest(at) {
		sum = digest.Digest(told)
	}
	if sum == "" {
		return digest.FromBytes(raw).String(), nil
	}
	if !model.IsImageDigest(sum.String()) || sum != sum.Algorithm().FromBytes(raw) {
		return "", invalid("the registry sent a manifest for %s that does not have its digest", syntax.Printable(at))
	}
	return sum.String(), nil
}

// openAt starts to fetch a layer from offset on. The bytes are not verified yet. It returns imagecache.ErrNoOffset when
// the registry does not serve parts.
func (i *Images) openAt(ctx context.Context, r model.ImageReference, layer *model.Layer, offset int64) (io.ReadCloser, error) {
	if r.Layout != "" {
		return i.layouts.openAt(r, layer, offset)
	}
	header := make(http.Header)
	if offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := i.get(ctx, r, "blobs/"+layer.Digest, header)
	if err != nil {
		return nil, err
	}
	if err := checkPart(resp, layer, offset); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp.Body, nil
}

// checkPart refuses an answer that is not the rest of a layer from offset on.
func checkPart(resp *http.Response, layer *model.Layer, offset int64) error {
	got := resp.Header.Get("Content-Range")
	switch {
	case offset > 0 && resp.StatusCode != http.StatusPartialContent:
		return imagecache.ErrNoOffset
	case offset > 0 && got != fmt.Sprintf("bytes %d-%d/%d", offset, layer.Size-1, layer.Size) &&
		got != fmt.Sprintf("bytes %d-%d/*", offset, layer.Size-1):
		return imagecache.ErrNoOffset // it answers with some other part
	case resp.ContentLength >= 0 && resp.ContentLength != layer.Size-offset:
		return invalid("the registry does not have the %d bytes of layer %s that the manifest names", layer.Size, layer.Digest)
	}
	return nil
}

package ociserver

import (
	"io"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"ingot/model/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRegistry(t *testing.T) {
	r := must.Get(New())(t)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ref, digest, err := r.PushBootImage("a/b", "1", []byte("kernel"), []byte("initrd"), nil)
	if err != nil || ref != r.Host()+"/a/b:1" {
		t.Fatal(ref, err)
	}
	_, index, err := r.Push("a/b", "all", Image{Architecture: "amd64", UKI: []byte("u")}, Image{Architecture: "arm64", UKI: []byte("v")})
	if err != nil {
		t.Fatal(err)
	}
	for title, tc := range map[string]struct {
		method, path, rng string
		code              int
		mediaType         string
	}{
		"the base of the API":            {"GET", "/v2/", "", 200, ""},
		"a manifest by tag":              {"GET", "/v2/a/b/manifests/1", "", 200, MediaManifest},
		"a manifest by digest":           {"HEAD", "/v2/a/b/manifests/" + digest, "", 200, MediaManifest},
		"an index":                       {"GET", "/v2/a/b/manifests/" + index, "", 200, MediaIndex},
		"a range of a blob":              {"GET", "/v2/a/b/blobs/" + digest, "bytes=1-2", 206, "application/octet-stream"},
		"a tag that is missing":          {"GET", "/v2/a/b/manifests/2", "", 404, ""},
		"a repository that is missing":   {"GET", "/v2/a/c/manifests/1", "", 404, ""},
		"a blob of another repository":   {"GET", "/v2/a/c/blobs/" + digest, "", 404, ""},
		"what is neither":                {"GET", "/v2/a/b/tags/list", "", 404, ""},
		"another path":                   {"GET", "/", "", 404, ""},
		"a push, which goes another way": {"PUT", "/v2/a/b/manifests/1", "", 405, ""},
	} {
		t.Run(title, func(t *testing.T) {
			req, _ := http.NewRequestWithContext(t.Context(), tc.method, "http://"+r.Host()+tc.path, nil)
			if tc.rng != "" {
				req.Header.Set("Range", tc.rng)
			}
			resp := must.Get(http.DefaultClient.Do(req))(t)
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != tc.code || tc.mediaType != "" && resp.Header.Get("Content-Type") != tc.mediaType {
				t.Errorf("%s, %s", resp.Status, resp.Header.Get("Content-Type"))
			}
		})
	}
	r.Corrupt("a/b", []byte("kernel"), []byte("colonel"))
	if resp, err := http.Get("http://" + r.Host() + "/v2/a/b/blobs/" + digestOf([]byte("kernel"))); err != nil {
		t.Error(err)
	} else if raw, err := io.ReadAll(resp.Body); string(raw) != "colonel" || err != nil || resp.Body.Close() != nil {
		t.Errorf("a corrupt blob is %q, %v", raw, err)
	}
	if _, _, err := r.Push("a/b", "none"); err == nil {
		t.Error("a push of nothing is taken")
	}
	if _, _, err := r.Push("a/b", "mixed", Image{UKI: []byte("u")}, Image{Architecture: "amd64"}); err == nil {
		t.Error("an image without architecture among several is taken")
	}
}

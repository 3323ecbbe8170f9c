package diskimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// Source is a disk image as it is fetched.
type Source struct {
	Ref    string // for people, as they wrote it
	Digest string // sha256:… or sha512:…, of the file as published
	Bytes  int64  // of the file; 0 = not known
	// Kind is what the file is said to be by its name or its media type: raw or qcow2, with +zstd,
	// +gzip, +xz or +bzip2 if it is packed; "" = nothing is said. What it is, its first bytes say.
	Kind string
	// Container reports that the file is the layer of a container image, with one disk image
	// below disk/.
	Container bool
	// Fetch starts to fetch the file from an offset on. It returns imagecache.ErrNoOffset when
	// parts cannot be had: then it is asked for the whole.
	Fetch func(ctx context.Context, from int64) (io.ReadCloser, error)
}

// sized is a body whose file's whole size may be known. A private size must not be shown.
type sized interface {
	Size() (bytes int64, private bool)
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// FromURL returns the source of an image on a web server. ref is the text of the claim. client decides where
// connections may go (oci.Images.Client). named reports whether the configuration, or a person at this machine,
// names the server: then errors and the progress show its answer. Otherwise they show it only for public
// addresses, because it would describe the networks here.
func FromURL(ref string, u model.ImageURL, client *http.Client, named bool) Source {
	f := &urlFetch{url: u.URL, named: named, client: *client}
	f.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil {
			return errors.New("a redirect leads to no plain URL of http or https")
		}
		return nil
	}
	src := Source{Ref: ref, Digest: u.Digest, Fetch: f.fetch}
	if parsed, err := url.Parse(u.URL); err == nil {
		src.Kind = syntax.DiskFile(parsed.Path)
	}
	return src
}

// urlFetch fetches from a web server.
type urlFetch struct {
	url    string
	named  bool
	client http.Client

	mu   sync.Mutex
	mark string // by which the server tells whether the file is still the same
}

func (f *urlFetch) fetch(ctx context.Context, from int64) (io.ReadCloser, error) {
	var public bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		addr, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
		public = err == nil && model.IsPublic(addr.Addr())
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "ingot")
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the file as it is
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		f.mu.Lock()
		if f.mark != "" {
			req.Header.Set("If-Range", f.mark)
		}
		f.mu.Unlock()
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, f.unreachable(err)
	}
	size, err := f.check(resp, from, public)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if from == 0 {
		f.mu.Lock()
		f.mark = markOf(resp.Header)
		f.mu.Unlock()
	}
	return sizedBody{resp.Body, size, !f.named && !public}, nil
}

// sizedBody is the body of an answer, with the size of the whole file, 0 if it is not known.
type sizedBody struct {
	io.ReadCloser
	size    int64
	private bool
}

// Size implements sized.
func (b sizedBody) Size() (bytes int64, private bool) { return b.size, b.private }

// markOf returns what a part is asked for by: only if the file is still the same
// (RFC 9110 §13.1.5).
func markOf(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// check returns the size of the whole file, 0 if the server does not say it.
func (f *urlFetch) check(resp *http.Response, from int64, public bool) (int64, error) {
	switch {
	case from > 0 && resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return 0, imagecache.ErrNoOffset
	case from > 0 && resp.StatusCode == http.StatusPartialContent:
		begins, size := contentRange(resp.Header.Get("Content-Range"))
		if begins != from {
			return 0, imagecache.ErrNoOffset
		}
		return size, nil
	case resp.StatusCode != http.StatusOK:
		return 0, f.refused(resp, public)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		if !f.named && !public {
			return 0, f.refused(resp, false)
		}
		return 0, refuse(model.ReasonRegistryUnreachable, "the server packs the file for the way (Content-Encoding %s), which was not asked for", syntax.Printable(coding))
	}
	return max(0, resp.ContentLength), nil
}

// contentRange returns where a part begins, and the size of the whole, 0 if it is not said.
func contentRange(h string) (begins, size int64) {
	span, whole, _ := strings.Cut(strings.TrimPrefix(h, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	begins, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return -1, 0
	}
	size, err = strconv.ParseInt(whole, 10, 64)
	if err != nil || size < 0 {
		size = 0
	}
	return begins, size
}

// statusError is an answer that is not the file.
type statusError struct{ code int }

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
}

// refused says for people why a server does not send the file.
func (f *urlFetch) refused(resp *http.Response, public bool) error {
	e := &Error{Reason: model.ReasonRegistryUnreachable, Err: &statusError{resp.StatusCode}}
	host := syntax.Printable(resp.Request.URL.Hostname())
	if !f.named && !public {
		e.Message = fmt.Sprintf("%s did not send the file; Ingot's log says more", host)
		return e
	}
	e.Message = fmt.Sprintf("%s: %v", host, e.Err)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.Reason, e.Message = model.ReasonNotFound, e.Message+": publishers remove old images, see which there are now"
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Reason, e.Message = model.ReasonUnauthorized, e.Message+": it asks for credentials, and none are sent to a URL; put the image into a registry"
	}
	return e
}

// unreachable says for people why a server cannot be asked.
func (f *urlFetch) unreachable(err error) error {
	var refused interface{ AddressRefused() bool }
	e := &Error{Reason: model.ReasonRegistryUnreachable, Err: err, Message: "the server of the disk image cannot be reached"}
	if link, ok := errors.AsType[*url.Error](err); ok {
		err = link.Err
	}
	switch {
	case errors.As(err, &refused) && refused.AddressRefused():
		e.Reason, e.Message = model.ReasonRegistryNotAllowed, "the server of the disk image: "+syntax.Printable(err.Error())
	case f.named:
		e.Message += ": " + syntax.Printable(err.Error())
	default:
		e.Message += "; Ingot's log says more"
	}
	return e
}

// passing reports whether an error of fetching may be gone when it is tried again at once.
func passing(err error) bool {
	var disk *diskError
	var own *Error
	var status *statusError
	switch {
	case errors.As(err, &disk), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return status.code >= 500 || status.code == http.StatusTooManyRequests || status.code == http.StatusRequestTimeout
	case errors.As(err, &own):
		return own.Reason == model.ReasonRegistryUnreachable
	}
	return true
}

// waitBefore is how long is waited before an attempt to fetch, from the second on.
func waitBefore(attempt int) time.Duration {
	return min(30*time.Second, 500*time.Millisecond<<min(attempt, 8))
}

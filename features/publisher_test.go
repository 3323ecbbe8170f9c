package features

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/bootsvc/diskimage/diskimagetest"
)

// publisher is a web server that has disk images, as distributions have.
type publisher struct {
	server *httptest.Server

	mu    sync.Mutex
	moved string              // where requests are redirected to, "" = nowhere
	files map[string][]byte   // by path
	cut   map[string]bool     // whose answers with the whole file end half way, by path
	asked map[string][]string // for which range each file was asked, "" = for the whole
}

func newPublisher() *publisher {
	p := &publisher{files: make(map[string][]byte), cut: make(map[string]bool), asked: make(map[string][]string)}
	p.server = httptest.NewServer(p)
	return p
}

func (p *publisher) host() string { return p.server.Listener.Addr().String() }

func (p *publisher) add(name string, content []byte, cut bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := "/" + name
	p.files[path], p.cut[path] = content, cut
	return p.server.URL + path
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	path := r.URL.Path
	content, has := p.files[path]
	cut := p.cut[path] && r.Header.Get("Range") == ""
	p.asked[path] = append(p.asked[path], r.Header.Get("Range"))
	p.mu.Unlock()
	if p.moved != "" {
		http.Redirect(w, r, p.moved+path, http.StatusFound)
		return
	}
	if !has {
		http.NotFound(w, r)
		return
	}
	if cut {
		w = &cutAnswer{w, len(content) / 2}
	}
	w.Header().Set("ETag", `"`+diskimagetest.SHA256(content)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// cutAnswer closes the connection once so many bytes are sent.
type cutAnswer struct {
	http.ResponseWriter
	left int
}

func (c *cutAnswer) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func imagesPublished(ctx context.Context) error {
	w := siteOf(ctx)
	w.publish = newPublisher()
	w.clients = append(w.clients, w.publish.server.Close)
	return nil
}

func diskImagePublished(ctx context.Context, name, how string) error {
	w, raw := siteOf(ctx), diskContent(name)
	cut, of := false, raw
	switch how {
	case "":
	case " with the digest of another file":
		of = diskContent(name + " as it was")
	case " and its server ends whole answers half way":
		cut = true
	case " of the stranger":
		w.image[name] = "http://" + w.stranger.Addr().String() + "/" + name + ".raw#" + diskimagetest.SHA256(raw)
		return nil
	case " that redirects to the stranger":
		w.publish.moved = "http://" + w.stranger.Addr().String()
	default:
		return fmt.Errorf("no disk image is known that is at a URL%s", how)
	}
	w.image[name] = w.publish.add(name+".raw", raw, cut) + "#" + diskimagetest.SHA256(of)
	return nil
}

func fetchedInParts(ctx context.Context, name string) error {
	p := siteOf(ctx).publish
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked["/"+name+".raw"]
	parts := slices.DeleteFunc(slices.Clone(asked), func(part string) bool { return part == "" })
	if len(parts) != 1 || !strings.HasPrefix(parts[0], "bytes=") || strings.HasPrefix(parts[0], "bytes=0-") {
		return fmt.Errorf("disk image %s was asked for %q", name, asked)
	}
	return nil
}

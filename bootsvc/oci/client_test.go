package oci

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ingot/bootsvc/imagecache"
	"ingot/model"
	"ingot/model/must"
)

func handle(f http.HandlerFunc) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler { return f }
}

// What registries do wrong with manifests, and what people are told of it.
func TestManifestsOfBrokenRegistries(t *testing.T) {
	reg := newRegistry(t)
	_, sum, _ := reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	other, _ := reg.PushManifest("os", mediaOCIManifest, object{"mediaType": mediaOCIManifest})
	send := func(contentType, body string, header ...string) func(http.Handler) http.Handler {
		return handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			for n := 0; n < len(header); n += 2 {
				w.Header().Set(header[n], header[n+1])
			}
			_, _ = io.WriteString(w, body)
		})
	}
	status := func(code int, body string) func(http.Handler) http.Handler {
		return handle(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	packed := func() string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, `{}`)
		_ = w.Close()
		return b.String()
	}()
	for title, tc := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		at     string // tag or digest; "" is the tag 1
		reason string
		want   string
	}{
		"a web page": {
			wrap: send("text/html; charset=utf-8", "<html>Please log in"), reason: model.ReasonValidationFailed,
			want: "a web page instead of a manifest",
		},
		"another JSON": {
			wrap: send("application/json", `{"ok":true}`), reason: model.ReasonValidationFailed, want: `media type "application/json"`,
		},
		"no type at all": {
			wrap:   send("", `{"layers":[]}`),
			reason: model.ReasonValidationFailed, want: `media type ""`,
		},
		"an answer packed unasked": {
			wrap:   send(mediaOCIManifest, packed, "Content-Encoding", "gzip"),
			reason: model.ReasonValidationFailed, want: "Content-Encoding gzip",
		},
		"I09: not what its digest says": {
			wrap: send(mediaOCIManifest, `{"mediaType":"`+mediaOCIManifest+`"}`), at: "@" + sum, reason: model.ReasonValidationFailed,
			want: "does not have its digest",
		},
		"I09: another, and it says so": {
			wrap: send(mediaOCIManifest, `{"mediaType":"`+mediaOCIManifest+`"}`, "Docker-Content-Digest", other.Digest), at: "@" + sum,
			reason: model.ReasonValidationFailed, want: "does not have its digest",
		},
		"I09: a tag's digest that is wrong": {
			wrap: send(mediaOCIManifest, `{}`, "Docker-Content-Digest", sum), reason: model.ReasonValidationFailed,
			want: "does not have its digest",
		},
		"a digest of no known algorithm": {
			wrap: send(mediaOCIManifest, `{}`, "Docker-Content-Digest", "md5:abc"), reason: model.ReasonValidationFailed,
			want: "does not have its digest",
		},
		"a type that lies": {
			wrap: send(mediaOCIIndex, `{"mediaType":"`+mediaOCIManifest+`","layers":[]}`), reason: model.ReasonValidationFailed,
			want: "no kernel layer",
		},
		"its own word for an error": {
			wrap: status(404, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"s3cret"}]}`), reason: model.ReasonNotFound,
			want: "no such repository, tag or digest",
		},
		"its own word for a refusal": {
			wrap:   status(403, `{"errors":[{"code":"DENIED","message":"Your authorization token has expired. Reauthenticate and try again."}]}`),
			reason: model.ReasonUnauthorized,
			want:   `403 Forbidden (DENIED), "Your authorization token has expired. Reauthenticate and try again."; check boot.credentialsFile`,
		},
		"its own message, bounded and printable": {
			wrap:   status(403, `{"errors":[{"code":"DENIED","message":"see https://x.example/?s3cret \u001b[1m`+strings.Repeat("a", 500)+`"}]}`),
			reason: model.ReasonUnauthorized, want: `(DENIED), "see (a URL) `,
		},
		"a rate limit": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "300")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}`)
			}),
			reason: model.ReasonRegistryUnreachable, want: `429 Too Many Requests (TOOMANYREQUESTS), "You have reached your pull rate limit.", retry after 5m0s`,
		},
		"a word that is none": {
			wrap:   status(403, `{"errors":[{"code":"<script>"}]}`),
			reason: model.ReasonUnauthorized, want: "403 Forbidden: ",
		},
		"an error that never ends": {
			wrap:   status(418, strings.Repeat("[", 1<<20)),
			reason: model.ReasonRegistryUnreachable, want: "418",
		},
		"an answer to a range never asked": {
			wrap:   status(206, "{}"),
			reason: model.ReasonRegistryUnreachable, want: "206",
		},
		"one that leads in circles": {
			wrap: handle(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path+"?s3cret", http.StatusFound)
			}),
			reason: model.ReasonRegistryUnreachable, want: "it leads elsewhere more than 10 times",
		},
		"one that leads nowhere": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://x/%zz?s3cret")
				w.WriteHeader(http.StatusFound)
			}),
			reason: model.ReasonRegistryUnreachable, want: "cannot be reached",
		},
		"a connection that is cut": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, "{")
			}),
			reason: model.ReasonRegistryUnreachable, want: "unexpected EOF",
		},
		"one that hangs up at once": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					conn.Close()
				}
			}),
			reason: model.ReasonRegistryUnreachable, want: "cannot be reached",
		},
		"one that trickles": {
			wrap: handle(func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, " ")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Millisecond)
				}
			}),
			reason: model.ReasonRegistryUnreachable, want: "did not answer within 1s",
		},
		"a header that never ends": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				for n := range 1000 {
					w.Header().Set(fmt.Sprint("X-", n), strings.Repeat("x", 1000))
				}
			}),
			reason: model.ReasonRegistryUnreachable, want: "cannot be reached",
		},
	} {
		t.Run(title, func(t *testing.T) {
			images := newImages(t, Options{Timeout: time.Second})
			images.hasten()
			at := tc.at
			if at == "" {
				at = ":1"
			}
			_, err := images.Resolve(t.Context(), front(t, reg, tc.wrap)+"/os"+at, "amd64")
			var e *Error
			if !errors.As(err, &e) || e.Reason != tc.reason ||
				!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %s: %s", err, tc.reason, tc.want)
			}
		})
	}
}

// What registries do wrong with layers before their first byte; imagecache handles the rest.
func TestLayersOfBrokenRegistries(t *testing.T) {
	reg := newRegistry(t)
	blob := []byte("0123456789")
	d := reg.PushBlob("os", "", blob)
	partly := func(contentRange, body string) func(http.Handler) http.Handler {
		return handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", contentRange)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, body)
		})
	}
	for title, tc := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		offset int64
		want   string // the bytes, or a part of the error
	}{
		"all of it":                   {wrap: func(next http.Handler) http.Handler { return next }, want: "0123456789"},
		"the rest of it":              {wrap: func(next http.Handler) http.Handler { return next }, offset: 4, want: "456789"},
		"the rest, its size left out": {wrap: partly("bytes 4-9/*", "456789"), offset: 4, want: "456789"},
		"I09: fewer bytes than it should": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0") }),
			want: "does not have the 10 bytes of layer sha256:",
		},
		"I09: more bytes than it should": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "01234567890") }),
			want: "does not have the 10 bytes of layer sha256:",
		},
		"one that serves no parts": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(blob) }), offset: 4,
			want: imagecache.ErrNoOffset.Error(),
		},
		"one that serves another part": {
			wrap: partly("bytes 0-9/10", "0123456789"), offset: 4,
			want: imagecache.ErrNoOffset.Error(),
		},
		"one that does not say which": {wrap: partly("", "456789"), offset: 4, want: imagecache.ErrNoOffset.Error()},
		"one that packs it": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(blob)
			}),
			want: "Content-Encoding gzip",
		},
		"one that lost it": {
			wrap: handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }),
			want: "no such repository, tag or digest",
		},
	} {
		t.Run(title, func(t *testing.T) {
			images := newImages(t, Options{})
			host := front(t, reg, tc.wrap)
			r := model.ImageReference{Registry: host, Repository: "os", Digest: d.Digest}
			body, err := images.Fetch(r, &model.Layer{Digest: d.Digest, Size: d.Size})(t.Context(), tc.offset)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			defer body.Close()
			if raw, err := io.ReadAll(body); err != nil || string(raw) != tc.want {
				t.Errorf("got %q, %v, want %s", raw, err, tc.want)
			}
		})
	}
}

// A registry that is busy is asked again, but not before it wants to be, nor for longer
// than anybody waits.
func TestABusyRegistryIsAskedAgain(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	for title, tc := range map[string]struct {
		code    int
		after   string
		busy    int32 // how often it is
		timeout time.Duration
		asked   int32
		atLeast time.Duration
		want    string // part of the error, "" = the image comes
	}{
		"429 once":                           {429, "", 1, time.Minute, 2, 0, ""},
		"503 twice":                          {503, "", 2, time.Minute, 3, 0, ""},
		"503 for ever":                       {503, "", 99, time.Minute, 3, 0, "503 Service Unavailable"},
		"429, and to come again in a second": {429, "1", 1, time.Minute, 2, time.Second, ""},
		"429, and to come again in an hour":  {429, "3600", 1, time.Minute, 1, 0, "429 Too Many Requests"},
		"429, and to come again too late":    {429, "2", 1, time.Second, 1, 0, "429 Too Many Requests"},
		"429, and to come again in the past": {429, "Mon, 02 Jan 2006 15:04:05 GMT", 1, time.Minute, 2, 0, ""},
		"403 is not busy":                    {403, "0", 99, time.Minute, 1, 0, "403"},
	} {
		t.Run(title, func(t *testing.T) {
			var asked atomic.Int32
			host := front(t, reg, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if asked.Add(1) > tc.busy {
						next.ServeHTTP(w, r)
						return
					}
					if tc.after != "" {
						w.Header().Set("Retry-After", tc.after)
					}
					w.WriteHeader(tc.code)
				})
			})
			images := newImages(t, Options{Timeout: tc.timeout})
			images.hasten()
			start := time.Now()
			_, err := images.Resolve(t.Context(), host+"/os:1", "amd64")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if n, took := asked.Load(), time.Since(start); n != tc.asked || took < tc.atLeast {
				t.Errorf("asked %d times in %s, want %d in %s or more", n, took, tc.asked, tc.atLeast)
			}
		})
	}
}

func TestAClientThatLeavesEndsTheWait(t *testing.T) {
	reg := newRegistry(t)
	ctx, leave := context.WithCancel(t.Context())
	host := front(t, reg, handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
		leave()
	}))
	if _, err := newImages(t, Options{}).Resolve(ctx, host+"/os:1", "amd64"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// remote leads images to servers of this machine as if they were elsewhere: example.com by
// TLS, and others without. Those are hosts and ports.
func remote(t *testing.T, images *Images, tls *httptest.Server, plain map[string]string) {
	t.Helper()
	images.blobs.next.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		at, ok := plain[addr]
		if addr == "example.com:443" && tls != nil {
			at, ok = tls.Listener.Addr().String(), true
		}
		if !ok {
			return nil, fmt.Errorf("no host is at %s", addr)
		}
		return new(net.Dialer).DialContext(ctx, network, at)
	}
	if tls != nil {
		images.blobs.next.base.TLSClientConfig = tls.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
}

// A registry that is spoken to by TLS, and what it may lead to.
func TestRegistriesByTLS(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	_, sum, _ := reg.PushBootImage("os", "2", []byte("k"), []byte("i"), nil)
	realm, _ := tokenServer(t, "token")
	tokens := strings.TrimPrefix(strings.TrimSuffix(realm, "/token?kept=1"), "http://")
	var storage seen
	store := front(t, reg, storage.note)
	toStore := func(next http.Handler) http.Handler {
		return basicGate(always("ann:s3cret"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com"+r.URL.Path, http.StatusTemporaryRedirect)
		}))
	}
	for title, tc := range map[string]struct {
		wrap func(http.Handler) http.Handler
		at   string
		want string // part of the error, "" = the image comes
	}{
		"the image comes": {basicGate(always("ann:s3cret")), ":1", ""},
		"I07: led to a place without TLS by digest": {toStore, "@" + sum, ""},
		"led to a place without TLS by a tag":       {toStore, ":1", "a place without TLS for what a tag means"},
		"Y05: a token server without TLS": {
			wrap: bearerGate("http://tokens.example/token?kept=1"), at: ":1", want: "token server tokens.example is not spoken to by TLS",
		},
		"Y05: a token server on the registry's machine": {
			wrap: bearerGate("https://127.0.0.1/token"), at: ":1", want: "token server 127.0.0.1: the address is refused",
		},
	} {
		t.Run(title, func(t *testing.T) {
			srv := httptest.NewTLSServer(tc.wrap(reg.Handler()))
			defer srv.Close()
			images := newImages(t, Options{CredentialsFile: writeFile(t, dockerLogin("example.com", "ann:s3cret"))})
			remote(t, images, srv, map[string]string{"example.com:80": store, "tokens.example:80": tokens})
			_, err := images.Resolve(t.Context(), "example.com/os"+tc.at, "amd64")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if storage.count() == 0 {
		t.Error("the place without TLS was never asked")
	}
	if got := storage.leaks(); got != nil {
		t.Errorf("I07: a place without TLS was shown %v", got)
	}
}

// Which registries are spoken to without TLS, and what one learns that gets it wrong.
func TestPlainHTTP(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	realm, _ := tokenServer(t, "token")
	tokens := strings.TrimPrefix(strings.TrimSuffix(realm, "/token?kept=1"), "http://")
	open := front(t, reg, func(next http.Handler) http.Handler { return next })
	gated := front(t, reg, bearerGate("http://10.0.0.7/token?kept=1"))
	byTLS := httptest.NewTLSServer(reg.Handler())
	t.Cleanup(byTLS.Close)
	for title, tc := range map[string]struct {
		list []string
		ref  string
		want string
	}{
		"one on the list": {list: []string{"registry.example:5000"}, ref: "registry.example:5000/os:1"},
		"one on the list in capital letters": {
			list: []string{"Registry.Example:5000"}, ref: "registry.example:5000/os:1",
		},
		"one that has a private token server": {list: []string{"10.0.0.6:5000"}, ref: "10.0.0.6:5000/os:1"},
		"one that is not on the list": {
			ref:  "registry.example:5000/os:1",
			want: "answers without TLS: list it in boot.registries",
		},
		"another port of one on the list": {
			list: []string{"registry.example"}, ref: "registry.example:5000/os:1",
			want: "boot.registries has registry.example",
		},
		"one on the list that wants TLS": {
			list: []string{"registry.example:5001"}, ref: "registry.example:5001/os:1", want: "without plain: true",
		},
	} {
		t.Run(title, func(t *testing.T) {
			images := newImages(t, Options{Registries: listed(true, tc.list...), CredentialsFile: writeFile(t, dockerLogin("10.0.0.6:5000", "ann:s3cret"))})
			remote(t, images, nil, map[string]string{
				"registry.example:5000": open, "registry.example:5001": byTLS.Listener.Addr().String(),
				"10.0.0.6:5000": gated, "10.0.0.7:80": tokens,
			})
			_, err := images.Resolve(t.Context(), tc.ref, "amd64")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	_, err := New(Options{Registries: listed(true, "http://registry.example")})
	if err == nil || !strings.HasPrefix(err.Error(), "boot.registries: ") {
		t.Errorf("a list with a URL: %v", err)
	}
}

// I12: what is known is booted while its registry cannot be asked.
func TestAReferenceMeansWhatItMeantLast(t *testing.T) {
	reg := newRegistry(t)
	_, sum, _ := reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	var code atomic.Int32
	host := front(t, reg, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c := code.Load(); c != 0 {
				w.WriteHeader(int(c))
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	before := func(ref, architecture string) (model.PinnedImage, bool) {
		return model.PinnedImage{Ref: "as written elsewhere", Digest: sumA}, ref == host+"/os:before" && architecture == "amd64"
	}
	images := newImages(t, Options{Pinned: before})
	images.hasten()
	must.Get(images.Resolve(t.Context(), host+"/os:1", "amd64"))(t)
	for title, tc := range map[string]struct {
		code      int32
		ref, arch string
		want      string // digest, or the reason why not
	}{
		"a registry that is down":                         {503, ":1", "amd64", sum},
		"by its other name":                               {503, "", "amd64", model.ReasonRegistryUnreachable},
		"what a ticket pinned before a restart":           {503, ":before", "amd64", sumA},
		"for another architecture nothing is known":       {503, ":1", "arm64", model.ReasonRegistryUnreachable},
		"what was never seen":                             {503, ":2", "amd64", model.ReasonRegistryUnreachable},
		"a registry that says no is not down":             {403, ":1", "amd64", model.ReasonUnauthorized},
		"a registry that has it no more is not down":      {404, ":1", "amd64", model.ReasonNotFound},
		"a registry that lost what was before, is not so": {404, ":before", "amd64", model.ReasonNotFound},
	} {
		t.Run(title, func(t *testing.T) {
			code.Store(tc.code)
			img, err := images.Resolve(t.Context(), host+"/os"+tc.ref, tc.arch)
			got := img.Digest
			if e, ok := errors.AsType[*Error](err); ok {
				got = e.Reason
			} else if img.Ref != host+"/os"+tc.ref {
				t.Errorf("the image is of %s", img.Ref)
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
	barred := newImages(t, Options{Registries: listed(false, "ghcr.io"), Pinned: before})
	if _, err := barred.Resolve(t.Context(), host+"/os:before", "amd64"); err == nil {
		t.Error("I08: a registry that is no longer allowed is booted from what was before")
	}
}

package oci

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

// seen is what a host was shown.
type seen struct {
	mu      sync.Mutex
	headers []http.Header
	paths   []string
}

func (s *seen) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		s.paths = append(s.paths, r.URL.Path)
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (s *seen) leaks() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.headers {
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer"} {
			if h.Get(name) != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paths)
}

// A registry that leads on: to a storage, which leads back to the registry's own host,
// where nothing is shown either.
func TestRedirectsCarryNoCredentials(t *testing.T) {
	reg := newRegistry(t)
	for title, login := range map[string]func(http.Handler) http.Handler{
		"Basic": basicGate(always("ann:s3cret")),
		"Bearer": func(next http.Handler) http.Handler {
			realm, _ := tokenServer(t, "token")
			return bearerGate(realm)(next)
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
			var storage, back seen
			var host string
			store := front(t, reg, func(next http.Handler) http.Handler {
				return storage.note(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "http://"+host+"/back"+r.URL.Path, http.StatusFound)
				}))
			})
			host = front(t, reg, func(next http.Handler) http.Handler {
				gate := login(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.URL.Path, "/blobs/") {
						http.SetCookie(w, &http.Cookie{Name: "session", Value: "s3cret"})
						http.Redirect(w, r, "http://"+store+r.URL.Path, http.StatusTemporaryRedirect)
						return
					}
					next.ServeHTTP(w, r)
				}))
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if path, ok := strings.CutPrefix(r.URL.Path, "/back"); ok {
						r.URL.Path = path
						back.note(next).ServeHTTP(w, r)
						return
					}
					gate.ServeHTTP(w, r)
				})
			})
			images := newImages(t, Options{CredentialsFile: writeFile(t, dockerLogin(host, "ann:s3cret"))})
			img := must.Get(images.Resolve(t.Context(), host+"/os:1", "amd64"))(t)
			r, _ := model.ParseImageReference(host + "/os@" + img.Kernel.Digest)
			for range 2 { // the second time with what is remembered
				body := must.Get(images.openAt(t.Context(), r, img.Kernel, 0))(t)
				raw, err := io.ReadAll(body)
				body.Close()
				if err != nil || string(raw) != "k" {
					t.Errorf("got %q, %v", raw, err)
				}
			}
			if storage.count() != 2 || back.count() != 2 {
				t.Fatalf("the storage was asked %d times, and the way back %d times", storage.count(), back.count())
			}
			if got := append(storage.leaks(), back.leaks()...); got != nil {
				t.Errorf("I07: another host was shown %v", got)
			}
		})
	}
}

// chain is a RoundTripper of hosts that each lead to the next. The last answers.
type chain struct {
	origins []string
	path    string // that they are asked for
	last    http.Header
	answer  func(*http.Request) *http.Response
	other   func(*http.Request) *http.Response // to other paths
}

func answer(req *http.Request, code int, body string, header ...string) *http.Response {
	resp := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
	for n := 0; n < len(header); n += 2 {
		resp.Header.Set(header[n], header[n+1])
	}
	return resp
}

func (c *chain) RoundTrip(req *http.Request) (*http.Response, error) {
	number, ok := strings.CutPrefix(req.URL.Path, c.path)
	if !ok {
		return c.other(req), nil
	}
	n, _ := strconv.Atoi(number)
	if resp := c.answer(req); n == len(c.origins)-1 || resp.StatusCode != http.StatusOK {
		if n == len(c.origins)-1 {
			c.last = req.Header.Clone()
		}
		return resp, nil
	}
	return answer(req, http.StatusTemporaryRedirect, "", "Location", fmt.Sprintf("%s%s%d", c.origins[n+1], c.path, n+1)), nil
}

// What the last of several hosts is shown, each of which leads to the next.
func TestCredentialsAlongRedirects(t *testing.T) {
	for title, tc := range map[string]struct {
		chain string // of origins
		keeps bool
	}{
		"the same host":                         {"https://a https://a", true},
		"the same host, its port written":       {"https://a https://a:443", true},
		"I07: another host":                     {"https://a https://b", false},
		"I07: a host below it":                  {"https://a.example https://x.a.example", false},
		"I07: another port":                     {"https://a https://a:8443", false},
		"I07: the same host without TLS":        {"https://a http://a", false},
		"I07: the same host and port, no TLS":   {"https://a:443 http://a:443", false},
		"I07: back where it came from":          {"https://a https://b https://a", false},
		"a chain that stays":                    {"https://a https://a https://a", true},
		"I07: to TLS, for it is another origin": {"http://a https://a", false},
	} {
		origins := strings.Fields(tc.chain)
		first := must.Get(url.Parse(origins[0]))(t)
		check := func(t *testing.T, of string, shown http.Header, err error) {
			t.Helper()
			if shown == nil && tc.keeps {
				t.Errorf("a %s: the last host was not asked: %v", of, err)
			}
			if got := shown.Get("Authorization") != ""; shown != nil && got != tc.keeps {
				t.Errorf("a %s: shown %v", of, shown)
			}
			if shown.Get("Referer") != "" {
				t.Errorf("a %s: shown %v", of, shown)
			}
		}
		t.Run(title, func(t *testing.T) {
			file := credentialsFile{path: writeFile(t, `{"auths":{"`+first.Host+`":{"auth":"`+encode("ann:s3cret")+`"}}}`)}
			r := model.ImageReference{Registry: first.Host, Repository: "os", Tag: "1"}
			registry := &chain{origins: origins, path: "/v2/os/blobs/", answer: func(req *http.Request) *http.Response {
				if strings.HasSuffix(req.URL.Path, "/0") && req.Header.Get("Authorization") == "" {
					return answer(req, http.StatusUnauthorized, "", "WWW-Authenticate", "Basic")
				}
				return answer(req, http.StatusOK, "")
			}}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, origins[0]+"/v2/os/blobs/0", nil)
			resp, err := newLogin(registry, file).do(req, r)
			if err == nil {
				resp.Body.Close()
			}
			check(t, "registry", registry.last, err)

			tokens := &chain{origins: origins, path: "/token/", answer: func(req *http.Request) *http.Response {
				return answer(req, http.StatusOK, `{"token":"t0ken"}`)
			}, other: func(req *http.Request) *http.Response {
				if req.Header.Get("Authorization") == "Bearer t0ken" {
					return answer(req, http.StatusOK, "")
				}
				return answer(req, http.StatusUnauthorized, "", "WWW-Authenticate", `Bearer realm="`+origins[0]+`/token/0"`)
			}}
			req, _ = http.NewRequestWithContext(t.Context(), http.MethodGet, first.Scheme+"://"+first.Host+"/v2/os/manifests/1", nil)
			resp, err = newLogin(tokens, file).do(req, r)
			if err == nil {
				resp.Body.Close()
			}
			check(t, "token server", tokens.last, err)
		})
	}
}

// A registry without TLS that leads to its own host with it, which asks for a login, is
// another origin as well.
func TestNobodyLogsInWhereARegistryLeadsTo(t *testing.T) {
	file := credentialsFile{path: writeFile(t, dockerLogin("a", "ann:s3cret"))}
	registry := &chain{origins: []string{"http://a", "https://a"}, path: "/v2/os/blobs/", answer: func(req *http.Request) *http.Response {
		if req.URL.Scheme == "https" && req.Header.Get("Authorization") == "" {
			return answer(req, http.StatusUnauthorized, "", "WWW-Authenticate", "Basic")
		}
		return answer(req, http.StatusOK, "")
	}}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/v2/os/blobs/0", nil)
	resp := must.Get(newLogin(registry, file).do(req, model.ImageReference{Registry: "a", Repository: "os", Tag: "1"}))(t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || registry.last.Get("Authorization") != "" {
		t.Errorf("%d, and it was shown %v", resp.StatusCode, registry.last)
	}
}

// A host that a registry or a token server leads to learns nothing by asking for a login.
func TestACredentialIsShownToNobodyElse(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	var thief seen
	var evil string
	evil = front(t, reg, func(http.Handler) http.Handler {
		return thief.note(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x", Bearer realm="http://`+evil+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
	})
	leads := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+evil+r.URL.Path, http.StatusTemporaryRedirect)
		})
	}
	realm := "http://" + front(t, reg, leads) + "/token"
	for title, tc := range map[string]struct {
		wrap func(http.Handler) http.Handler
		file string // the entry of the registry
	}{
		"a registry that leads to it":                 {leads, `{"username":"ann","password":"s3cret"}`},
		"a token server that leads to it":             {bearerGate(realm), `{"username":"ann","password":"s3cret"}`},
		"a token server that leads an identity there": {bearerGate(realm), `{"identitytoken":"s3cret"}`},
		"a registry that leads to it after it has let in": {
			wrap: func(http.Handler) http.Handler { return basicGate(always("ann:s3cret"))(leads(nil)) },
			file: `{"username":"ann","password":"s3cret"}`,
		},
	} {
		t.Run(title, func(t *testing.T) {
			host := front(t, reg, tc.wrap)
			images := newImages(t, Options{CredentialsFile: writeFile(t, `{"auths":{"`+host+`":`+tc.file+`}}`)})
			if _, err := images.Resolve(t.Context(), host+"/os:1", "amd64"); err == nil {
				t.Error("the image was found")
			}
			if got := thief.leaks(); got != nil {
				t.Errorf("it was shown %v", got)
			}
		})
	}
	for _, h := range thief.headers {
		if h.Get("Content-Type") != "" {
			t.Error("an identity token was sent on to another host")
		}
	}
}

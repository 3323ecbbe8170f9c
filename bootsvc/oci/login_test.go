package oci

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func encode(login string) string { return base64.StdEncoding.EncodeToString([]byte(login)) }

func dockerLogin(host, login string) string {
	return `{"auths":{"` + host + `":{"auth":"` + encode(login) + `"}}}`
}

func basicGate(want func() string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, ok := r.BasicAuth(); !ok || u+":"+p != want() {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func always(s string) func() string { return func() string { return s } }

// bearerGate lets in who shows the token t0ken, and says that realm has it.
func bearerGate(realm string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t0ken" {
				w.Header().Add("WWW-Authenticate", "Negotiate")
				w.Header().Add("WWW-Authenticate", `Basic realm="x", Bearer realm="`+realm+`",service="x y",scope="repository:os:pull"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// tokenServer gives the token t0ken, by either name, to a client that logs in as ann or shows the
// identity token id.
func tokenServer(t *testing.T, field string) (realm string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		u, p, _ := r.BasicAuth()
		known := u == "ann" && p == "s3cret"
		if r.Method == http.MethodPost {
			known = r.FormValue("grant_type") == "refresh_token" &&
				r.FormValue("refresh_token") == "id" && r.FormValue("client_id") == "ingot"
		}
		if !known || r.FormValue("scope") != "repository:os:pull" || r.FormValue("service") != "x y" || r.FormValue("kept") != "1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{%q:"t0ken","expires_in":300}`, field)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/token?kept=1", asked
}

func TestRegistryCredentials(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	basic := basicGate(always("ann:s3cret"))
	bearer := func(field string) func(http.Handler) http.Handler {
		realm, _ := tokenServer(t, field)
		return bearerGate(realm)
	}
	answer := func(status int, body string) func(http.Handler) http.Handler {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(srv.Close)
		return bearerGate(srv.URL)
	}
	login := func(entry string) string { return `{"auths":{"HOST":` + entry + `}}` }
	ann := login(`{"auth":"` + encode("ann:s3cret") + `"}`)
	wrong := login(`{"auth":"` + encode("ann:wr0ng") + `"}`)
	for title, tc := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		file   string // of credentials, HOST stands for the registry; "" = none
		reason string
		want   string
	}{
		"I06: Basic": {wrap: basic, file: ann},
		"I06: Basic with an empty password": {
			wrap: basicGate(always("ann:")), file: login(`{"auth":"` + encode("ann:") + `"}`),
		},
		"I06: Basic with a wrong password": {
			wrap: basic, file: wrong, reason: model.ReasonUnauthorized, want: "refuses the credentials that boot.credentialsFile has",
		},
		"I06: Basic without a file": {
			wrap: basic, reason: model.ReasonUnauthorized, want: "asks for credentials: boot.credentialsFile is not set",
		},
		"I06: Basic without credentials for it": {
			wrap: basic, file: dockerLogin("ghcr.io", "ann:s3cret"), reason: model.ReasonUnauthorized,
			want: "boot.credentialsFile has none for 127.0.0.1:",
		},
		"I06: a token from another port":     {wrap: bearer("token"), file: ann},
		"I06: a token by its other name":     {wrap: bearer("access_token"), file: ann},
		"I06: a token for an identity token": {wrap: bearer("access_token"), file: login(`{"identitytoken":"id"}`)},
		"I06: a token that is in the file":   {wrap: bearer("token"), file: login(`{"registrytoken":"t0ken"}`)},
		"I06: a token that is not given for credentials": {
			wrap: bearer("token"), file: wrong, reason: model.ReasonUnauthorized,
			want: "refuses the credentials that boot.credentialsFile has for",
		},
		"I06: a token that is not given without": {
			wrap: bearer("token"), reason: model.ReasonUnauthorized,
			want: "gives no token without credentials (401): boot.credentialsFile is not set",
		},
		"a token that the registry does not take": {
			wrap: answer(200, `{"token":"other"}`), reason: model.ReasonUnauthorized, want: "credentials are needed to see it",
		},
		"a token server that is down": {
			wrap: answer(503, ""), file: ann,
			reason: model.ReasonRegistryUnreachable, want: "answered 503",
		},
		"a token server that has a page": {
			wrap: answer(200, "<html>"), file: ann,
			reason: model.ReasonUnauthorized, want: "sent no token",
		},
		"a token that is none": {
			wrap: answer(200, `{"token":"a\nb: c"}`), file: ann,
			reason: model.ReasonUnauthorized, want: "sent no token",
		},
		"a token server that never ends": {
			wrap: answer(200, `{"token":"`+strings.Repeat("a", 1<<20)+`"}`), file: ann,
			reason: model.ReasonUnauthorized, want: "sent no token",
		},
		"Y05: a token server at a metadata address": {
			wrap: bearerGate("http://169.254.169.254/token"), file: ann,
			reason: model.ReasonRegistryNotAllowed, want: "token server 169.254.169.254",
		},
		"Y05: a token server of another scheme": {
			wrap: bearerGate("ftp://x/token"), file: ann,
			reason: model.ReasonUnauthorized, want: "not spoken to by TLS",
		},
	} {
		t.Run(title, func(t *testing.T) {
			host := front(t, reg, tc.wrap)
			o := Options{}
			if tc.file != "" {
				o.CredentialsFile = writeFile(t, strings.ReplaceAll(tc.file, "HOST", host))
			}
			images := newImages(t, o)
			images.hasten()
			_, err := images.Resolve(t.Context(), host+"/os:1", "amd64")
			var e *Error
			if tc.reason == "" && err != nil ||
				tc.reason != "" && (!errors.As(err, &e) || e.Reason != tc.reason || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q: %s", err, tc.reason, tc.want)
			}
			for _, secret := range []string{"s3cret", "wr0ng", "ann", "t0ken", encode("ann:")} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("Y06: the error shows %s: %v", secret, err)
				}
			}
		})
	}
}

func TestCredentialsAreReadAgainWhenTheyAreRotated(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	var login atomic.Value
	login.Store("ann:old")
	host := front(t, reg, basicGate(func() string { return login.Load().(string) }))
	path := writeFile(t, dockerLogin(host, "ann:old"))
	images := newImages(t, Options{CredentialsFile: path})
	resolve := func(want string) {
		t.Helper()
		_, err := images.Resolve(t.Context(), host+"/os:1", "amd64")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	resolve("")
	login.Store("ann:new")
	resolve("refuses the credentials")
	rewrite(t, path, `{"auths":`) // half written
	resolve("boot.credentialsFile: " + path + " is not JSON")
	rewrite(t, path, dockerLogin(host, "ann:new"))
	resolve("")
	must.Do(t, os.Remove(path))
	resolve("") // what the registry takes need not be read again
}

func TestTokensAreRememberedForAsLongAsTheyAreGood(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("os", "1", []byte("k"), []byte("i"), nil)
	realm, asked := tokenServer(t, "token")
	var ended atomic.Bool
	host := front(t, reg, func(next http.Handler) http.Handler {
		gate := bearerGate(realm)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ended.Swap(false) {
				r.Header.Set("Authorization", "Bearer of another day")
			}
			gate.ServeHTTP(w, r)
		})
	})
	images := newImages(t, Options{CredentialsFile: writeFile(t, dockerLogin(host, "ann:s3cret"))})
	now := time.Now()
	images.login.now = func() time.Time { return now }
	resolve := func(want int32) {
		t.Helper()
		must.Get(images.Resolve(t.Context(), host+"/os:1", "amd64"))(t)
		if n := asked.Load(); n != want {
			t.Errorf("the token server was asked %d times, want %d", n, want)
		}
	}
	resolve(1)
	resolve(1)
	ended.Store(true)
	resolve(2)
	now = now.Add(59 * time.Minute)
	resolve(2)
	now = now.Add(time.Minute) // the credentials may have been taken out of the file since
	resolve(3)
}

// A credential for a path is not shown for another path of its registry, whichever was
// asked for first.
func TestCredentialsOfAPathStayThere(t *testing.T) {
	reg := newRegistry(t)
	_, _, _ = reg.PushBootImage("a/os", "1", []byte("k"), []byte("i"), nil)
	_, _, _ = reg.PushBootImage("b/os", "1", []byte("k"), []byte("i"), nil)
	var shown seen
	host := front(t, reg, func(next http.Handler) http.Handler {
		return shown.note(basicGate(always("ann:s3cret"))(next))
	})
	images := newImages(t, Options{CredentialsFile: writeFile(t, dockerLogin(host+"/a", "ann:s3cret"))})
	for range 2 {
		must.Get(images.Resolve(t.Context(), host+"/a/os:1", "amd64"))(t)
		_, err := images.Resolve(t.Context(), host+"/b/os:1", "amd64")
		if err == nil || !strings.Contains(err.Error(), "has none for "+host) {
			t.Errorf("another path: %v", err)
		}
	}
	for n, path := range shown.paths {
		if strings.HasPrefix(path, "/v2/b/") && shown.headers[n].Get("Authorization") != "" {
			t.Errorf("%s was asked for with the credential of another path", path)
		}
	}
}

// What a registry refuses is forgotten, and not shown to it again before the file is
// read: some lock an account after a few wrong passwords.
func TestARefusedCredentialIsShownOnce(t *testing.T) {
	reg := newRegistry(t)
	var shown seen
	host := front(t, reg, func(next http.Handler) http.Handler {
		return shown.note(basicGate(always("ann:s3cret"))(next))
	})
	images := newImages(t, Options{CredentialsFile: writeFile(t, dockerLogin(host, "ann:wr0ng"))})
	for range 3 {
		if _, err := images.Resolve(t.Context(), host+"/os:1", "amd64"); err == nil {
			t.Fatal("the image was found")
		}
	}
	if n := len(shown.leaks()); n != 3 {
		t.Errorf("three requests showed it %d times", n)
	}
}

// hasten makes Images ask again without a pause.
func (i *Images) hasten() {
	i.retries.pause = time.Millisecond
}

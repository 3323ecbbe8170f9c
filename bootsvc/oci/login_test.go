package oci

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writeFile writes a file of the test's own.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func encode(login string) string { return base64.StdEncoding.EncodeToString([]byte(login)) }

// dockerLogin is a docker config.json with a login for a registry.
func dockerLogin(host, login string) string {
	return `{"auths":{"` + host + `":{"auth":"` + encode(login) + `"}}}`
}

func TestCredentialsOfARepository(t *testing.T) {
	for title, tc := range map[string]struct {
		file string
		ref  string
		want string // username:password, identity, bearer; "" when there are none
	}{
		"base64 of username and password": {`{"auths":{"ghcr.io":{"auth":"` + encode("ann:pw") + `"}}}`, "ghcr.io/a/b", "ann:pw,,"},
		"base64 without its padding":      {`{"auths":{"ghcr.io":{"auth":"` + strings.TrimRight(encode("ann:p"), "=") + `"}}}`, "ghcr.io/a/b", "ann:p,,"},
		"a password with colons":          {`{"auths":{"ghcr.io":{"auth":"` + encode("ann:p:w") + `"}}}`, "ghcr.io/a/b", "ann:p:w,,"},
		"username and password in clear":  {`{"auths":{"ghcr.io":{"username":"ann","password":"pw"}}}`, "ghcr.io/a/b", "ann:pw,,"},
		"base64 goes before both":         {`{"auths":{"ghcr.io":{"username":"x","password":"y","auth":"` + encode("ann:pw") + `"}}}`, "ghcr.io/a/b", "ann:pw,,"},
		"an identity token":               {`{"auths":{"ghcr.io":{"identitytoken":"id"}}}`, "ghcr.io/a/b", ":,id,"},
		"a registry token":                {`{"auths":{"ghcr.io":{"registrytoken":"bt"}}}`, "ghcr.io/a/b", ":,,bt"},
		"those of the repository go before its registry's": {
			`{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"},"ghcr.io/a/b":{"username":"ab"}}}`, "ghcr.io/a/b:1", "ab:,,"},
		"those of the nearest path above it are next": {
			`{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"},"ghcr.io/a/b":{"username":"ab"}}}`, "ghcr.io/a/c:1", "a:,,"},
		"a path is one of whole names": {
			`{"auths":{"ghcr.io":{"username":"all"},"ghcr.io/a":{"username":"a"}}}`, "ghcr.io/ab", "all:,,"},
		"Docker Hub's odd key":                    {`{"auths":{"https://index.docker.io/v1/":{"username":"hub"}}}`, "debian", "hub:,,"},
		"Docker Hub's odd key without the scheme": {`{"auths":{"index.docker.io/v1/":{"username":"hub"}}}`, "docker.io/a/b", "hub:,,"},
		"a key that is a URL":                     {`{"auths":{"https://ghcr.io/v2/":{"username":"ann"}}}`, "ghcr.io/a", "ann:,,"},
		"a key in capital letters":                {`{"auths":{"GHCR.IO":{"username":"ann"}}}`, "ghcr.io/a", "ann:,,"},
		"of two keys the one in normal form":      {`{"auths":{"GHCR.IO":{"username":"old"},"ghcr.io":{"username":"new"},"https://ghcr.io":{"username":"old"}}}`, "ghcr.io/a", "new:,,"},
		"I08: a look-alike has none":              {`{"auths":{"ghcr.io":{"username":"ann"}}}`, "ghcr.io.evil.example/a", ":,,"},
		"I08: another port has none":              {`{"auths":{"ghcr.io":{"username":"ann"}}}`, "ghcr.io:8443/a", ":,,"},
		"I08: a repository called so has none":    {`{"auths":{"ghcr.io":{"username":"ann"}}}`, "evil.example/ghcr.io", ":,,"},
		"a file without any":                      {`{}`, "ghcr.io/a", ":,,"},
	} {
		t.Run(title, func(t *testing.T) {
			r, err := ParseReference(tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			c, err := credentialsFile{writeFile(t, tc.file)}.lookup(r)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Username + ":" + c.Password + "," + c.RefreshToken + "," + c.AccessToken
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	for title, tc := range map[string]struct {
		path string
		want string // part of the error; "" when it shows only once a registry asks
		late string // part of the error then
	}{
		"a file that is missing":    {filepath.Join(t.TempDir(), "none"), "no such file", ""},
		"a folder":                  {t.TempDir(), "is a directory", ""},
		"what is not JSON":          {writeFile(t, "auths: {}"), "is not JSON as docker login writes it", ""},
		"an empty file":             {writeFile(t, ""), "is not JSON", ""},
		"auths that are a list":     {writeFile(t, `{"auths":[]}`), "is not JSON as docker login", ""},
		"a file that never ends":    {"/dev/zero", "is larger than 1048576 bytes", ""},
		"what is not base64":        {writeFile(t, `{"auths":{"ghcr.io":{"auth":"s3cret!"}}}`), "", "entry ghcr.io: its auth is not base64 of username:password"},
		"base64 of something else":  {writeFile(t, `{"auths":{"ghcr.io":{"auth":"`+encode("s3cret")+`"}}}`), "", "entry ghcr.io: its auth is not base64"},
		"a program that keeps them": {writeFile(t, `{"auths":{},"credsStore":"desktop"}`), "", "leaves the credentials of ghcr.io to a helper program"},
		"a program for a registry":  {writeFile(t, `{"credHelpers":{"ghcr.io":"gh"}}`), "", "write them into its auths"},
	} {
		t.Run(title, func(t *testing.T) {
			images, err := New(Options{CredentialsFile: tc.path})
			want := tc.want
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = images.login.credentials.lookup(Reference{Registry: "ghcr.io", Repository: "a"})
				want = tc.late
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "boot.credentialsFile: ") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %s and what to mend", err, want)
			}
		})
	}
}

func TestParseChallenges(t *testing.T) {
	for title, tc := range map[string]struct {
		field string
		want  []challenge
	}{
		"a token server": {`Bearer realm="https://a/token",service="a b",scope="repository:x:pull"`,
			[]challenge{{"bearer", map[string]string{"realm": "https://a/token", "service": "a b", "scope": "repository:x:pull"}}}},
		"two at once": {`Basic realm="x", Bearer realm=y , service = "z"`,
			[]challenge{{"basic", map[string]string{"realm": "x"}}, {"bearer", map[string]string{"realm": "y", "service": "z"}}}},
		"capital letters":           {`BASIC REALM="x"`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"quotes within":             {`Basic realm="a\"b\\c,d"`, []challenge{{"basic", map[string]string{"realm": `a"b\c,d`}}}},
		"a scheme alone":            {`Negotiate`, []challenge{{"negotiate", map[string]string{}}}},
		"a quote that never ends":   {`Basic realm="x`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"a backslash at the end":    {`Basic realm="x\`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
		"nothing":                   {``, nil},
		"a parameter of no one":     {`realm="x"`, nil},
		"letters that are none":     {"Basic \x00\xff", []challenge{{"basic", map[string]string{}}}},
		"commas and spaces between": {`, ,Basic ,, realm=x,`, []challenge{{"basic", map[string]string{"realm": "x"}}}},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseChallenges(tc.field), cmp.AllowUnexported(challenge{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{`Bearer realm="https://a/token",service=a`, `Basic realm="x\`, `=,"`, `a=b c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ch := range parseChallenges(s) {
			if ch.scheme == "" || ch.params == nil {
				t.Fatalf("%q has a challenge of no scheme", s)
			}
		}
	})
}

// Where a registry may send credentials to.
func TestTokenServers(t *testing.T) {
	for title, tc := range map[string]struct {
		realm, registry string
		want            string // part of the error, "" = it is asked
	}{
		"I06: another host":                      {"https://auth.example/token", "https://registry.example", ""},
		"I06: another private host":              {"https://10.0.0.7:8443/token", "https://10.0.0.6:5000", ""},
		"a registry without TLS, one with it":    {"https://auth.example/token", "http://registry.example", ""},
		"a registry without TLS, one without":    {"http://10.0.0.7/token", "http://10.0.0.6:5000", ""},
		"Y05: a registry with TLS, one without":  {"http://auth.example/token", "https://registry.example", "not spoken to by TLS"},
		"Y05: a file":                            {"file:///etc/passwd", "https://registry.example", "no token server that can be understood"},
		"Y05: another scheme":                    {"gopher://x/", "http://registry.example", "not spoken to by TLS"},
		"Y05: a name and password":               {"https://a:b@auth.example/", "https://registry.example", "no token server"},
		"none":                                   {"", "https://registry.example", "no token server"},
		"what is no URL":                         {"https://%zz/", "https://registry.example", "no token server"},
		"a path alone, which means another host": {"/token", "https://registry.example", "no token server"},
	} {
		t.Run(title, func(t *testing.T) {
			registry, err := url.Parse(tc.registry)
			if err != nil {
				t.Fatal(err)
			}
			u, err := realmOf(tc.realm, registry)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %q", u, err, tc.want)
			}
		})
	}
}

// basicGate lets in who shows a login.
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

// tokenServer gives the token t0ken, by either name, to who logs in as ann or shows the
// identity token id.
func tokenServer(t *testing.T, field string) (realm string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		u, p, _ := r.BasicAuth()
		known := u == "ann" && p == "s3cret"
		if r.Method == http.MethodPost {
			known = r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") == "id" && r.FormValue("client_id") == "ingot"
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
		"I06: Basic":                                     {basic, ann, "", ""},
		"I06: Basic with a wrong password":               {basic, wrong, ReasonUnauthorized, "refuses the credentials that boot.credentialsFile has"},
		"I06: Basic without a file":                      {basic, "", ReasonUnauthorized, "asks for credentials: boot.credentialsFile is not set"},
		"I06: Basic without credentials for it":          {basic, dockerLogin("ghcr.io", "ann:s3cret"), ReasonUnauthorized, "boot.credentialsFile has none for 127.0.0.1:"},
		"I06: a token from another port":                 {bearer("token"), ann, "", ""},
		"I06: a token by its other name":                 {bearer("access_token"), ann, "", ""},
		"I06: a token for an identity token":             {bearer("access_token"), login(`{"identitytoken":"id"}`), "", ""},
		"I06: a token that is in the file":               {bearer("token"), login(`{"registrytoken":"t0ken"}`), "", ""},
		"I06: a token that is not given for credentials": {bearer("token"), wrong, ReasonUnauthorized, "refuses the credentials that boot.credentialsFile has for"},
		"I06: a token that is not given without":         {bearer("token"), "", ReasonUnauthorized, "gives no token without credentials (401): boot.credentialsFile is not set"},
		"a token that the registry does not take":        {answer(200, `{"token":"other"}`), "", ReasonUnauthorized, "credentials are needed to see it"},
		"a token server that is down":                    {answer(503, ""), ann, ReasonUnreachable, "answered 503"},
		"a token server that has a page":                 {answer(200, "<html>"), ann, ReasonUnauthorized, "sent no token"},
		"a token that is none":                           {answer(200, `{"token":"a\nb: c"}`), ann, ReasonUnauthorized, "sent no token"},
		"a token server that never ends":                 {answer(200, `{"token":"`+strings.Repeat("a", 1<<20)+`"}`), ann, ReasonUnauthorized, "sent no token"},
		"Y05: a token server at a metadata address":      {bearerGate("http://169.254.169.254/token"), ann, ReasonForbidden, "token server 169.254.169.254"},
		"Y05: a token server of another scheme":          {bearerGate("ftp://x/token"), ann, ReasonUnauthorized, "not spoken to by TLS"},
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
			if tc.reason == "" && err != nil || tc.reason != "" && (!errors.As(err, &e) || e.Reason != tc.reason || !strings.Contains(err.Error(), tc.want)) {
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
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
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
		if _, err := images.Resolve(t.Context(), host+"/os:1", "amd64"); err != nil {
			t.Fatal(err)
		}
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
		if _, err := images.Resolve(t.Context(), host+"/a/os:1", "amd64"); err != nil {
			t.Fatal(err)
		}
		if _, err := images.Resolve(t.Context(), host+"/b/os:1", "amd64"); err == nil || !strings.Contains(err.Error(), "has none for "+host) {
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

// leaks returns which headers that hold secrets, or lead to them, the host was shown.
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
			img, err := images.Resolve(t.Context(), host+"/os:1", "amd64")
			if err != nil {
				t.Fatal(err)
			}
			r, _ := ParseReference(host + "/os@" + img.Kernel.Digest)
			for range 2 { // the second time with what is remembered
				body, err := images.openAt(t.Context(), r, img.Kernel, 0)
				if err != nil {
					t.Fatal(err)
				}
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

// RoundTrip implements http.RoundTripper. The paths of a chain are numbered.
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
		first, err := url.Parse(origins[0])
		if err != nil {
			t.Fatal(err)
		}
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
			file := credentialsFile{writeFile(t, `{"auths":{"`+first.Host+`":{"auth":"`+encode("ann:s3cret")+`"}}}`)}
			r := Reference{Registry: first.Host, Repository: "os", Tag: "1"}
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
	file := credentialsFile{writeFile(t, dockerLogin("a", "ann:s3cret"))}
	registry := &chain{origins: []string{"http://a", "https://a"}, path: "/v2/os/blobs/", answer: func(req *http.Request) *http.Response {
		if req.URL.Scheme == "https" && req.Header.Get("Authorization") == "" {
			return answer(req, http.StatusUnauthorized, "", "WWW-Authenticate", "Basic")
		}
		return answer(req, http.StatusOK, "")
	}}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/v2/os/blobs/0", nil)
	resp, err := newLogin(registry, file).do(req, Reference{Registry: "a", Repository: "os", Tag: "1"})
	if err != nil {
		t.Fatal(err)
	}
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
		"a registry that leads to it":                     {leads, `{"username":"ann","password":"s3cret"}`},
		"a token server that leads to it":                 {bearerGate(realm), `{"username":"ann","password":"s3cret"}`},
		"a token server that leads an identity there":     {bearerGate(realm), `{"identitytoken":"s3cret"}`},
		"a registry that leads to it after it has let in": {func(http.Handler) http.Handler { return basicGate(always("ann:s3cret"))(leads(nil)) }, `{"username":"ann","password":"s3cret"}`},
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

// hasten makes Images ask again without a pause.
func (i *Images) hasten() {
	i.retries.pause = time.Millisecond
}

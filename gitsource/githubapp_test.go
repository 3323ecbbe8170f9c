package gitsource

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
)

// gitHub stands in for GitHub's API: it gives an installation tokens that the repository
// takes.
type gitHub struct {
	key    *rsa.PublicKey
	now    func() time.Time
	repo   *gitserver.HTTPServer
	given  atomic.Int32
	answer func(http.ResponseWriter) bool // in place of a token
}

// ServeHTTP implements http.Handler.
func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(code int, text string) { w.WriteHeader(code); fmt.Fprintf(w, `{"message":%q}`, text) }
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		fail(401, "no token")
		return
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], signature) != nil {
		fail(401, "A JSON web token could not be decoded")
		return
	}
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(raw, &claims)
	now := g.now().Unix()
	switch {
	case claims.Iss != "7" || claims.Iat > now || claims.Exp < now || claims.Exp > now+600:
		fail(401, "'Expiration time' claim is wrong")
	case r.Method != http.MethodPost || r.URL.Path != "/api/v3/app/installations/42/access_tokens":
		fail(404, "Not Found")
	case g.answer != nil && g.answer(w):
	default:
		token := fmt.Sprintf("ghs_secret%d", g.given.Add(1))
		g.repo.SetPassword(token)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_at": g.now().Add(time.Hour)})
	}
}

func rsaKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key := ok[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	return key, writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestAGitHubAppLogsIn(t *testing.T) {
	repo := repoWithClaim(t)
	key, file := rsaKey(t)
	now := newClock()
	hub := &gitHub{key: &key.PublicKey, now: now.Now}
	hub.repo = serveHTTP(t, repo, gitserver.HTTPOptions{TLS: true, Username: "x-access-token", Password: "none yet"})
	api := httptest.NewServer(hub)
	t.Cleanup(api.Close)
	opts := testOptions(t, hub.repo.URL)
	opts.Clock, opts.Timeout = now.Now, time.Minute
	opts.Auth = Auth{
		CAFile:    writeFile(t, hub.repo.CA),
		GitHubApp: &GitHubApp{AppID: 7, InstallationID: 42, PrivateKeyFile: file, URL: api.URL + "/api/v3/"},
	}
	s := newSource(t, opts)
	s.remote.clock = now.Now
	tokens := func(what string, want int32) {
		t.Helper()
		if got := hub.given.Load(); got != want {
			t.Errorf("%s: %d tokens, want %d", what, got, want)
		}
	}
	mustSync(t, s)
	tokens("first", 1)
	now.now = now.now.Add(time.Hour - opts.Timeout - tokenMargin)
	mustSync(t, s)
	tokens("it outlives the operation", 1)
	now.now = now.now.Add(time.Second)
	mustSync(t, s)
	tokens("G11 it might not", 2)
	hub.repo.SetPassword("revoked")
	err := s.Sync(t.Context())
	if kindOf(err) != failureAuth || strings.Contains(err.Error(), "ghs_") {
		t.Errorf("a token that was revoked: %v", err)
	}
	mustSync(t, s)
	tokens("it is asked for anew", 3)

	b, err := NewStatusBranch(StatusOptions{URL: hub.repo.URL, Auth: opts.Auth, Dir: t.TempDir(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	b.remote.clock = now.Now
	ok[Published](t)(b.Publish(t.Context(), report(1, map[string]string{"README.md": "a"})))
	tokens("the status branch", 4)

	_, other := rsaKey(t)
	for name, c := range map[string]struct {
		change func(*GitHubApp)
		answer string
		code   int
		want   string
	}{
		"another key":          {change: func(a *GitHubApp) { a.PrivateKeyFile = other }, want: "is none of the app's"},
		"no key":               {change: func(a *GitHubApp) { a.PrivateKeyFile = writeFile(t, []byte("x")) }, want: "holds no PEM private key"},
		"a key that is gone":   {change: func(a *GitHubApp) { a.PrivateKeyFile = "/none" }, want: "privateKeyFile: open /none"},
		"another app":          {change: func(a *GitHubApp) { a.AppID = 8 }, want: "GitHub App 8"},
		"another installation": {change: func(a *GitHubApp) { a.InstallationID = 1 }, want: "the app has no such installation"},
		"an API of nobody's":   {change: func(a *GitHubApp) { a.URL = "http://127.0.0.1:1" }, want: "cannot be reached"},
		"a page":               {code: 201, answer: "<html>ghs_x</html>", want: "holds no token that is valid"},
		"an expired token":     {code: 201, answer: `{"token":"ghs_x","expires_at":"2020-01-01T00:00:00Z"}`, want: "holds no token"},
		"a redirect":           {code: 302, answer: `{}`, want: "status code: 302"},
		"an answer at length":  {code: 403, answer: `{"message":"` + strings.Repeat("x", 2000) + `"}`, want: "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			app := *opts.Auth.GitHubApp
			if c.change != nil {
				c.change(&app)
			}
			hub.answer = nil
			if c.code != 0 {
				hub.answer = func(w http.ResponseWriter) bool {
					w.Header().Set("Location", "http://127.0.0.1:1/")
					w.WriteHeader(c.code)
					fmt.Fprint(w, c.answer)
					return true
				}
			}
			o := opts
			o.Dir, o.Auth.GitHubApp = t.TempDir(), &app
			s := newSource(t, o)
			s.remote.clock = now.Now
			err := s.Sync(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "ghs_") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

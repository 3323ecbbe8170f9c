package gitsource

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
	"ingot/model/must"
)

func rsaKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key := ok[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	return key, writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestAGitHubAppLogsIn(t *testing.T) {
	t.Parallel()
	repo := repoWithClaim(t)
	key, file := rsaKey(t)
	now := newClock()
	hub := &gitserver.GitHubApp{Key: &key.PublicKey, Now: now.Now}
	hub.Repo = serveHTTP(t, repo, gitserver.HTTPOptions{TLS: true, Username: "x-access-token", Password: "none yet"})
	api := httptest.NewServer(hub)
	t.Cleanup(api.Close)
	opts := testOptions(t, hub.Repo.URL)
	opts.Clock, opts.Timeout = now.Now, time.Minute
	opts.Auth = Auth{
		CAFile:    writeFile(t, hub.Repo.CA),
		GitHubApp: &GitHubApp{AppID: 7, InstallationID: 42, PrivateKeyFile: file, API: api.URL + "/api/v3"},
	}
	s := newSource(t, opts)
	s.remote.clock = now.Now
	tokens := func(what string, want int32) {
		t.Helper()
		if got := hub.Given.Load(); got != want {
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
	hub.Repo.SetPassword("revoked")
	err := s.Sync(t.Context())
	if kindOf(err) != failureAuth || strings.Contains(err.Error(), "ghs_") {
		t.Errorf("a token that was revoked: %v", err)
	}
	mustSync(t, s)
	tokens("it is asked for anew", 3)

	b := must.Get(NewStatusBranch(StatusOptions{URL: hub.Repo.URL, Auth: opts.Auth, Dir: t.TempDir(), Timeout: time.Minute}))(t)
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
		"an API of nobody's":   {change: func(a *GitHubApp) { a.API = "http://127.0.0.1:1" }, want: "cannot be reached"},
		"a page":               {code: 201, answer: "<html>ghs_x</html>", want: "has no valid token"},
		"an expired token":     {code: 201, answer: `{"token":"ghs_x","expires_at":"2020-01-01T00:00:00Z"}`, want: "has no valid token"},
		"a redirect":           {code: 302, answer: `{}`, want: "status code: 302"},
		"an answer at length":  {code: 403, answer: `{"message":"` + strings.Repeat("x", 2000) + `"}`, want: "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			app := *opts.Auth.GitHubApp
			if c.change != nil {
				c.change(&app)
			}
			hub.Answer = nil
			if c.code != 0 {
				hub.Answer = func(w http.ResponseWriter) bool {
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

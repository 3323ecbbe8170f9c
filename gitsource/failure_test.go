package gitsource

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/model/must"
)

// Each cause has a text of its own, with what to do.
func TestFailureTexts(t *testing.T) {
	answer := func(code int, body string, header ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for n := 0; n < len(header); n += 2 {
				w.Header().Set(header[n], header[n+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/r.git"
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	sha256 := filepath.Join(t.TempDir(), "r")
	must.Do(t, exec.CommandContext(t.Context(), "git", "init", "--quiet", "--object-format=sha256", sha256).Run())
	must.Do(t, exec.CommandContext(t.Context(), "git", "-C", sha256, "-c", "user.name=a", "-c", "user.email=a@example.com",
		"commit", "--quiet", "--allow-empty", "--message=a").Run())
	for name, tc := range map[string]struct{ url, want string }{
		"DNS":     {"http://git.invalid/r.git", "there is no host git.invalid (DNS); check the spelling of git.url"},
		"refused": {gone.URL + "/r.git", "it refuses connections, nothing listens at that port"},
		"401":     {answer(401, ""), "other credentials than it was given (401); look at auth.usernameFile"},
		"403":     {answer(403, ""), "they do not allow this (403); give them read access"},
		"404":     {answer(404, ""), "there is no such repository, or the credentials do not show it (404); check the path of git.url"},
		"429":     {answer(429, "", "Retry-After", "120"), "the server was asked too often (429); a longer git.interval, or a webhook, needs fewer requests. It asks for no request for 2m0s"},
		"HTML":    {answer(200, "<!DOCTYPE html><html><body>Log in", "Content-Type", "text/html"), "something else than Git, such as a web page; check that git.url"},
		"SHA-256": {sha256, "object format SHA-256, which Ingot does not support"},
		"TLS":     {tlsServer(t), "the server's certificate is not trusted; look at auth.caFile"},
	} {
		t.Run(name, func(t *testing.T) {
			read, _ := CheckAccess(t.Context(), tc.url, Ref{Branch: "main"}, Auth{}, 10*time.Second)
			if read == nil || !strings.Contains(read.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", read, tc.want)
			}
		})
	}
}

func tlsServer(t *testing.T) string {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL + "/r.git"
}

// A folder that is not there is named, with those that are.
func TestCheckPath(t *testing.T) {
	repo := repoWithClaim(t)
	must.Get(repo.Commit(map[string]string{"fleet/a.yaml": claimYAML("a", "a"), "docs/b.txt": "b"}, "add a"))(t)
	check := func(path string) error {
		return CheckPath(t.Context(), repo.URL(), Ref{Branch: "main"}, Auth{}, path, 10*time.Second)
	}
	if err := check("fleet"); err != nil {
		t.Error(err)
	}
	if err := check("flett"); err == nil || !strings.Contains(err.Error(), "folder flett is not in main@sha1:") || !strings.HasSuffix(err.Error(), "there are only docs, fleet") {
		t.Error(err)
	}
}

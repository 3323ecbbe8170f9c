package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model/must"
)

const (
	secret    = "a-secret-of-the-forge"
	newSecret = "the-one-that-comes-after"
	ourBody   = `{"ref":"refs/heads/main","repository":{"clone_url":"https://git.example.com/infra/metal.git"}}`
)

func newWebhook(t *testing.T, content string) (h *Webhook, woken *atomic.Int32, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	woken = new(atomic.Int32)
	h = must.Get(NewWebhook(WebhookOptions{
		Branches:   Branches{Repository: "git@git.example.com:infra/metal.git", Branch: "main", Status: "status"},
		SecretFile: file, Wake: func() { woken.Add(1) }, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}))(t)
	return h, woken, file
}

func sign(with, body string) string {
	mac := hmac.New(sha256.New, []byte(with))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func announce(h http.Handler, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for name, value := range header {
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// wished reports whether the handler was asked to look at the branch since it was last
// asked this.
func wished(h *Webhook) bool {
	select {
	case <-h.wanted:
		return true
	default:
		return false
	}
}

func TestWhatAnAnnouncementDoes(t *testing.T) {
	body := func(ref, repository string) string {
		return fmt.Sprintf(`{"ref":%q,"repository":{"clone_url":%q,"ssh_url":"git@elsewhere.test:a/b.git"}}`, ref, repository)
	}
	const ours = "https://git.example.com/infra/metal.git"
	form := "payload=" + url.QueryEscape(ourBody)
	large := `{"ref":"` + strings.Repeat("x", maxBody) + `"}`
	hub := func(body string) map[string]string {
		return map[string]string{"X-Hub-Signature-256": "sha256=" + sign(secret, body), "X-GitHub-Event": "push"}
	}
	with := func(header map[string]string, name, value string) map[string]string {
		header[name] = value
		return header
	}
	for title, tc := range map[string]struct {
		method, path, body string
		header             map[string]string
		code               int
		result             result
	}{
		"GitHub announces a push": {body: ourBody, header: hub(ourBody), code: 200, result: resultAccepted},
		"GitHub sends a form": {
			body: form, header: with(hub(form), "Content-Type", "application/x-www-form-urlencoded"), code: 200, result: resultAccepted,
		},
		"GitLab announces a push": {
			body:   `{"ref":"refs/heads/main","project":{"git_http_url":"https://git.example.com/infra/metal.git"}}`,
			header: map[string]string{"X-Gitlab-Token": secret, "X-Gitlab-Event": "Push Hook"}, code: 200, result: resultAccepted,
		},
		"GitLab announces it by a system hook": {
			body:   `{"event_name":"push","ref":"refs/heads/main","project":{"git_ssh_url":"git@git.example.com:infra/metal.git"}}`,
			header: map[string]string{"X-Gitlab-Token": secret, "X-Gitlab-Event": "System Hook"}, code: 200, result: resultAccepted,
		},
		"Gitea announces a push": {
			body: ourBody, header: map[string]string{"X-Gitea-Signature": sign(secret, ourBody), "X-Gitea-Event": "push"},
			code: 200, result: resultAccepted,
		},
		"Forgejo announces a push": {
			body: ourBody, header: map[string]string{"X-Forgejo-Signature": sign(secret, ourBody), "X-Forgejo-Event": "push"},
			code: 200, result: resultAccepted,
		},
		"something else announces a push": {
			body: ourBody, header: map[string]string{"X-Signature-256": "sha256=" + sign(secret, ourBody)}, code: 200, result: resultAccepted,
		},
		"curl says that it sends a form": {
			body: ourBody, header: with(hub(ourBody), "Content-Type", "application/x-www-form-urlencoded"), code: 200, result: resultAccepted,
		},
		"something else says nothing more": {
			body: "{}", header: map[string]string{"X-Signature-256": sign(secret, "{}")}, code: 200, result: resultAccepted,
		},
		"the other secret counts too": {
			body: ourBody, header: map[string]string{"X-Signature-256": sign(newSecret, ourBody)}, code: 200, result: resultAccepted,
		},
		"the path may be /webhook": {path: "/webhook", body: ourBody, header: hub(ourBody), code: 200, result: resultAccepted},

		"G14: another branch": {
			body: body("refs/heads/feature", ours), header: hub(body("refs/heads/feature", ours)), code: 200, result: resultOtherBranch,
		},
		"G14: a tag of the same name": {
			body: body("refs/tags/main", ours), header: hub(body("refs/tags/main", ours)), code: 200, result: resultOtherBranch,
		},
		"G14: another repository": {
			body:   body("refs/heads/main", "https://git.example.com/infra/other.git"),
			header: hub(body("refs/heads/main", "https://git.example.com/infra/other.git")), code: 200, result: resultOtherRepo,
		},
		"S10: Ingot's own push": {
			body: body("refs/heads/status", ours), header: hub(body("refs/heads/status", ours)), code: 200, result: resultStatusBranch,
		},
		"a ping":        {body: `{"zen":"x"}`, header: with(hub(`{"zen":"x"}`), "X-GitHub-Event", "ping"), code: 200, result: resultNoPush},
		"another event": {body: ourBody, header: with(hub(ourBody), "X-GitHub-Event", "issues"), code: 200, result: resultNoPush},
		"another event of a system": {
			body: `{"event_name":"user_create"}`, header: map[string]string{"X-Gitlab-Token": secret, "X-Gitlab-Event": "System Hook"},
			code: 200, result: resultNoPush,
		},

		"no signature": {body: ourBody, code: 401, result: resultUnauthorized},
		"of another secret": {
			body: ourBody, header: map[string]string{"X-Hub-Signature-256": "sha256=" + sign("guess", ourBody)},
			code: 401, result: resultUnauthorized,
		},
		"of another body": {body: ourBody, header: hub("{}"), code: 401, result: resultUnauthorized},
		"no hexadecimal": {
			body: ourBody, header: map[string]string{"X-Gitea-Signature": "none"}, code: 401, result: resultUnauthorized,
		},
		"cut short": {
			body: ourBody, header: map[string]string{"X-Gitea-Signature": sign(secret, ourBody)[:32]}, code: 401, result: resultUnauthorized,
		},
		"another token": {
			body: ourBody, header: map[string]string{"X-Gitlab-Token": "guess"}, code: 401, result: resultUnauthorized,
		},
		"a token cut short": {
			body: ourBody, header: map[string]string{"X-Gitlab-Token": secret[:5]}, code: 401, result: resultUnauthorized,
		},
		"both secrets at once": {
			body: ourBody, header: map[string]string{"X-Gitlab-Token": secret + " " + newSecret}, code: 401, result: resultUnauthorized,
		},

		"G15: larger than 1 MiB": {body: large, header: hub(large), code: 413, result: resultTooLarge},
		"signed, but no JSON":    {body: "ref=main", header: hub("ref=main"), code: 400, result: resultMalformed},
		"signed, but no object":  {body: `"main"`, header: hub(`"main"`), code: 400, result: resultMalformed},
		"another path":           {path: "/metrics", body: ourBody, header: hub(ourBody), code: 404, result: resultNotFound},
		"another method":         {method: http.MethodGet, header: hub(""), code: 405, result: resultNotFound},
	} {
		t.Run(title, func(t *testing.T) {
			h, _, _ := newWebhook(t, secret+"\n\n"+newSecret+"\n")
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			if tc.path == "" {
				tc.path = "/"
			}
			w := announce(h, tc.method, tc.path, tc.body, tc.header)
			if w.Code != tc.code {
				t.Errorf("answered %d %s, want %d", w.Code, w.Body, tc.code)
			}
			if got := wished(h); got != (tc.result == resultAccepted) {
				t.Errorf("the branch is looked at: %v", got)
			}
			for _, r := range allResults {
				want := 0.0
				if r == tc.result {
					want = 1
				}
				if got := testutil.ToFloat64(h.requests.WithLabelValues(string(r))); got != want {
					t.Errorf("%s is counted %v times, want %v", r, got, want)
				}
			}
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("the answer has the secret: %s", w.Body)
			}
		})
	}
}

func TestABodyOfUnknownLengthIsBounded(t *testing.T) {
	h, _, _ := newWebhook(t, secret)
	body := strings.Repeat("x", maxBody+1)
	req := httptest.NewRequest(http.MethodPost, "/", struct{ *strings.Reader }{strings.NewReader(body)})
	req.ContentLength = -1
	req.Header.Set("X-Signature-256", sign(secret, body))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %d, want 413", w.Code)
	}
}

func TestARepositoryOnThisMachineIsWhateverIsAnnounced(t *testing.T) {
	b := Branches{Repository: "/srv/git/metal.git", Branch: "main", Status: "status"}
	p := must.Get(readPush("", []byte(ourBody)))(t)
	if got, text := b.judge(http.Header{}, p); got != resultAccepted {
		t.Errorf("got %s: %s", got, text)
	}
}

func TestTagsThatAreFollowedAreLookedAt(t *testing.T) {
	tags := Branches{Repository: "/srv/git/metal.git", Status: "status"}
	main := Branches{Repository: "/srv/git/metal.git", Branch: "main", Status: "status"}
	hooks := map[string]http.Header{
		"Tag Push Hook": {"X-Gitlab-Event": []string{"Tag Push Hook"}},
		"System Hook":   {"X-Gitlab-Event": []string{"System Hook"}},
	}
	for _, c := range []struct {
		of   Branches
		ref  string
		want result
	}{
		{tags, "refs/tags/v1.2.0", resultAccepted},
		{tags, "", resultAccepted},
		{tags, "refs/heads/main", resultOtherBranch},
		{tags, "refs/heads/status", resultStatusBranch},
		{main, "refs/tags/v1.2.0", resultOtherBranch},
		{main, "refs/tags/main", resultOtherBranch},
		{main, "main", resultOtherBranch}, // what is no branch by its full name is none
	} {
		for name, h := range hooks {
			if got, text := c.of.judge(h, push{Ref: c.ref, EventName: "tag_push"}); got != c.want {
				t.Errorf("%s, %q of %+v: %s: %s, want %s", name, c.ref, c.of, got, text, c.want)
			}
		}
	}
}

func TestASecretIsRotatedWithoutARestart(t *testing.T) {
	h, _, file := newWebhook(t, secret)
	header := map[string]string{"X-Signature-256": sign(newSecret, ourBody)}
	if w := announce(h, http.MethodPost, "/", ourBody, header); w.Code != http.StatusUnauthorized {
		t.Fatalf("answered %d before the secret is there", w.Code)
	}
	must.Do(t, os.WriteFile(file, []byte(newSecret), 0o600))
	if w := announce(h, http.MethodPost, "/", ourBody, header); w.Code != http.StatusOK {
		t.Errorf("answered %d with the new secret", w.Code)
	}
	old := map[string]string{"X-Signature-256": sign(secret, ourBody)}
	if w := announce(h, http.MethodPost, "/", ourBody, old); w.Code != http.StatusUnauthorized {
		t.Errorf("answered %d with the old secret", w.Code)
	}
	must.Do(t, os.Remove(file))
	if w := announce(h, http.MethodPost, "/", ourBody, header); w.Code != http.StatusOK {
		t.Errorf("answered %d while the file is away, though the secret was known", w.Code)
	}
}

func TestSecretsThatAreNoneAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	for title, file := range map[string]string{
		"too many": write("many", strings.Repeat("x\n", maxSecrets+1)), "too large": write("large", strings.Repeat("x", maxSecretFile+1)),
	} {
		if _, err := NewWebhook(WebhookOptions{SecretFile: file}); err == nil {
			t.Errorf("%s: there is a webhook", title)
		}
	}
}

func TestSecretsThatCannotBeReadYetRefuseAllUntilTheyCan(t *testing.T) {
	h, _, file := newWebhook(t, secret)
	opts := h.opts
	opts.Registerer = nil
	must.Do(t, os.WriteFile(file, []byte(" \n\n"), 0o600))
	if _, err := NewWebhook(opts); err != nil {
		t.Errorf("while the file is empty: %v", err)
	}
	must.Do(t, os.Remove(file))
	h = must.Get(NewWebhook(opts))(t)
	header := map[string]string{"X-Signature-256": sign(secret, ourBody)}
	for _, key := range []string{secret, ""} {
		if w := announce(h, http.MethodPost, "/", ourBody, map[string]string{"X-Signature-256": sign(key, ourBody)}); w.Code != http.StatusUnauthorized {
			t.Errorf("answered %d without secrets", w.Code)
		}
	}
	must.Do(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	if w := announce(h, http.MethodPost, "/", ourBody, header); w.Code != http.StatusAccepted && w.Code != http.StatusOK {
		t.Errorf("answered %d once the file is there", w.Code)
	}
}

// G13, and a request that somebody sends again: it carries nothing.
func TestAStormOfPushesComesToAFewLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, woken, _ := newWebhook(t, secret)
		go func() { _ = h.Run(t.Context()) }()
		header := map[string]string{"X-Signature-256": sign(secret, ourBody)}
		announce(h, http.MethodPost, "/", ourBody, header)
		synctest.Wait()
		if n := woken.Load(); n != 1 {
			t.Fatalf("%d looks after the first push, want one at once", n)
		}
		for range 99 {
			announce(h, http.MethodPost, "/", ourBody, header)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if n := woken.Load(); n != 2 {
			t.Errorf("%d looks after 100 pushes at once, want 2", n)
		}
		for range 100 {
			announce(h, http.MethodPost, "/", ourBody, header)
			time.Sleep(600 * time.Millisecond)
		}
		if n := woken.Load() - 2; n > 13 {
			t.Errorf("%d looks for 100 pushes in a minute, want at most 13", n)
		}
	})
}

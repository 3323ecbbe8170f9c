package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
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
	large := strings.Repeat("x", maxBody+1)
	hub := func(body string) map[string]string {
		return map[string]string{"X-Hub-Signature-256": "sha256=" + sign(secret, body), "X-GitHub-Event": "push"}
	}
	for title, tc := range map[string]struct {
		method, path, body string
		header             map[string]string
		code               int
		result             result
	}{
		"GitHub announces a push": {body: ourBody, header: hub(ourBody), code: 200, result: resultAccepted},
		"GitLab announces a push": {body: ourBody, header: map[string]string{"X-Gitlab-Token": secret}, code: 200, result: resultAccepted},
		"Gitea announces a push": {
			body: ourBody, header: map[string]string{"X-Gitea-Signature": sign(secret, ourBody), "X-Gitea-Event": "push"},
			code: 200, result: resultAccepted,
		},
		"Forgejo announces a push": {
			body: ourBody, header: map[string]string{"X-Forgejo-Signature": sign(secret, ourBody), "X-Forgejo-Event": "push"},
			code: 200, result: resultAccepted,
		},
		"Bitbucket announces a push": {
			body: ourBody, header: map[string]string{"X-Hub-Signature": "sha256=" + sign(secret, ourBody), "X-Event-Key": "repo:push"},
			code: 200, result: resultAccepted,
		},
		"Gogs announces a push": {
			body: ourBody, header: map[string]string{"X-Gogs-Signature": sign(secret, ourBody), "X-Gogs-Event": "push"}, code: 200, result: resultAccepted,
		},
		"something else announces a push": {
			body: ourBody, header: map[string]string{"X-Signature-256": "sha256=" + sign(secret, ourBody)}, code: 200, result: resultAccepted,
		},
		"the body is empty": {header: map[string]string{"X-Signature-256": sign(secret, "")}, code: 200, result: resultAccepted},
		"the other secret counts too": {
			body: ourBody, header: map[string]string{"X-Signature-256": sign(newSecret, ourBody)}, code: 200, result: resultAccepted,
		},
		"the path may be /webhook": {path: "/webhook", body: ourBody, header: hub(ourBody), code: 200, result: resultAccepted},

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
		"a token with more than 1 MiB": {
			body: large, header: map[string]string{"X-Gitlab-Token": secret}, code: 413, result: resultTooLarge,
		},
		"another path":   {path: "/metrics", body: ourBody, header: hub(ourBody), code: 404, result: resultNotFound},
		"another method": {method: http.MethodGet, header: hub(""), code: 405, result: resultNotFound},
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

// unreadable fails the test if it is read.
type unreadable struct{ t *testing.T }

func (b unreadable) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}

func TestATokenIsCheckedBeforeTheBodyIsRead(t *testing.T) {
	h, _, _ := newWebhook(t, secret)
	req := httptest.NewRequest(http.MethodPost, "/", unreadable{t})
	req.Header.Set("X-Gitlab-Token", "guess")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("answered %d, want 401", w.Code)
	}
}

func TestABodyThatBreaksOffWakesNothing(t *testing.T) {
	h, _, _ := newWebhook(t, secret)
	body := io.MultiReader(strings.NewReader(ourBody), iotest.ErrReader(io.ErrUnexpectedEOF))
	req := httptest.NewRequest(http.MethodPost, "/", body)
	req.Header.Set("X-Signature-256", sign(secret, ourBody))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusBadRequest || wished(h) {
		t.Errorf("answered %d, want 400 and no poll", w.Code)
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

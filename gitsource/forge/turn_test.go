package forge

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func announceFrom(h http.Handler, address string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, announcement(address, strings.NewReader(ourBody)))
	return w.Code
}

func announcement(address string, body io.Reader) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/", body)
	req.RemoteAddr = address
	req.Header.Set("X-Signature-256", sign(secret, ourBody))
	return req
}

// stalled sends announcements whose bodies do not arrive before the test is over.
func stalled(t *testing.T, h http.Handler, address string, n int) (arrive func()) {
	t.Helper()
	body, sent := io.Pipe()
	for range n {
		go h.ServeHTTP(httptest.NewRecorder(), announcement(address, body))
	}
	synctest.Wait()
	return func() { _ = sent.Close() }
}

func TestAStrangerDoesNotKeepTheForgeWaiting(t *testing.T) {
	for name, tc := range map[string]struct{ stranger, sameStranger, forge string }{
		"at an IPv4 address":  {"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"},
		"of one IPv6 network": {"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::1]:1"},
		"by IPv4 within IPv6": {"[::ffff:192.0.2.1]:1", "192.0.2.1:2", "[::ffff:192.0.2.2]:1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, woken, _ := newWebhook(t, secret)
				go func() { _ = h.Run(t.Context()) }()
				arrive := stalled(t, h, tc.stranger, 2*maxBodies)
				began := time.Now()
				code, took := announceFrom(h, tc.forge), time.Since(began)
				if code != http.StatusOK || took > 0 {
					t.Errorf("the forge is answered %d after %s, want 200 at once", code, took)
				}
				if code := announceFrom(h, tc.sameStranger); code != http.StatusServiceUnavailable {
					t.Errorf("the stranger is answered %d, want 503", code)
				}
				arrive()
				synctest.Wait()
				if code := announceFrom(h, tc.sameStranger); code != http.StatusOK {
					t.Errorf("answered %d once the other bodies have ended, want 200", code)
				}
				if len(h.turns.all) != 0 || len(h.turns.byClient) != 0 {
					t.Errorf("%d bodies of %d clients are still counted", len(h.turns.all), len(h.turns.byClient))
				}
				if woken.Load() == 0 {
					t.Error("nobody looked at the branch")
				}
			})
		})
	}
}

func TestAProxyOnThisMachineActsForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newWebhook(t, secret)
		defer stalled(t, h, "127.0.0.1:1", maxBodies-1)()
		if code := announceFrom(h, "127.0.0.1:2"); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
	})
}

func TestManyBodiesAtOnceWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := newWebhook(t, secret)
		var arrive func()
		for n := range maxBodies / maxClientBodies {
			arrive = stalled(t, h, fmt.Sprintf("192.0.2.%d:1", n+1), maxClientBodies)
			defer arrive()
		}
		if code := announceFrom(h, "192.0.2.99:1"); code != http.StatusServiceUnavailable {
			t.Errorf("answered %d while all turns are taken, want 503", code)
		}
		time.AfterFunc(busyTimeout/2, arrive)
		if code := announceFrom(h, "192.0.2.99:1"); code != http.StatusOK {
			t.Errorf("answered %d once there is room, want 200", code)
		}
	})
}

// noBody is a body of which nothing may be read.
type noBody struct{ t *testing.T }

func (b noBody) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}

func TestATokenIsCheckedBeforeTheBodyIsRead(t *testing.T) {
	h, _, _ := newWebhook(t, secret)
	req := httptest.NewRequest(http.MethodPost, "/", noBody{t})
	req.Header.Set("X-Gitlab-Token", "guess")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("answered %d, want 401", w.Code)
	}
}

package access

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func gathered(t *testing.T, reg prometheus.Gatherer) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}

func world(t *testing.T) (*Access, *clock, string) {
	t.Helper()
	c := &clock{time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)}
	file := usersFile(t)
	return made(t, Options{Listener: outside, UsersFile: file, Clock: c.time}), c, file
}

// occupy has as many passwords checked as may be, until the function it returns is called.
func occupy(p *passwords) (free func()) {
	for range maxChecks {
		p.checks <- struct{}{}
	}
	return func() {
		for range maxChecks {
			<-p.checks
		}
	}
}

func TestAPasswordIsCheckedOnceInAWhile(t *testing.T) {
	a, now, file := world(t)
	if w := ask(a, "/", as(user, password)); w.Code != http.StatusOK {
		t.Fatalf("got %d", w.Code)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	soon := func(r *http.Request) { *r = *r.WithContext(impatient) }
	free := occupy(a.passwords)
	if w := ask(a, "/", soon, as(user, password)); w.Code != http.StatusOK {
		t.Errorf("a password that was right a moment ago got %d", w.Code)
	}
	if w := ask(a, "/", soon, as(user, "another")); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("another password got %d %v", w.Code, w.Header())
	}
	now.now = now.now.Add(provenTime)
	if w := ask(a, "/", soon, as(user, password)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a password that was right a while ago got %d", w.Code)
	}
	free()
	if w := ask(a, "/", as(user, password)); w.Code != http.StatusOK {
		t.Errorf("the same again got %d", w.Code)
	}
	write(t, file, hashed(t, user, "changed"))
	now.now = now.now.Add(rereadEvery)
	if w := ask(a, "/", as(user, password)); w.Code != http.StatusUnauthorized {
		t.Errorf("a password that was changed got %d", w.Code)
	}
	if w := ask(a, "/", as(user, "changed")); w.Code != http.StatusOK {
		t.Errorf("the new password got %d", w.Code)
	}
}

func TestAFileOfUsersThatBreaksLeavesThoseBefore(t *testing.T) {
	var log bytes.Buffer
	c := &clock{time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)}
	file := usersFile(t)
	reg := prometheus.NewRegistry()
	a := made(t, Options{Listener: outside, UsersFile: file, Clock: c.time, Log: slog.New(slog.NewTextHandler(&log, nil)), Registerer: reg})
	log.Reset()
	write(t, file, user+":hunter2\n")
	c.now = c.now.Add(rereadEvery)
	if w := ask(a, "/", as(user, password)); w.Code != http.StatusOK {
		t.Errorf("got %d", w.Code)
	}
	if !strings.Contains(log.String(), `users:1: user \"anna\" has`) || strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log says %s", log.String())
	}
	if !strings.Contains(gathered(t, reg), `ingot_admin_files_unusable{setting="admin.users"} 1`) {
		t.Error("no metric says that it is broken")
	}
}

func TestNobodyHasNoPassword(t *testing.T) {
	a, _, _ := world(t)
	u := a.passwords.file.get()
	u.nobody = u.hashes[user] // as if it had been guessed
	if w := ask(a, "/", as("eve", password)); w.Code != http.StatusUnauthorized {
		t.Errorf("a user that there is not got %d", w.Code)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	a, _, _ := world(t)
	p := a.passwords
	for i := range 2 * maxProven {
		p.prove(p.proofOf(strconv.Itoa(i)))
	}
	if len(p.proven) > maxProven {
		t.Errorf("%d proofs", len(p.proven))
	}
}

func TestPartsOfAProofDoNotRunTogether(t *testing.T) {
	a, _, _ := world(t)
	if p := a.passwords; p.proofOf("a", "bc", "h") == p.proofOf("ab", "c", "h") {
		t.Error("they do")
	}
}

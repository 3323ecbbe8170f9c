package notify

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/reconcile/report"
)

// secret is part of the address and of the headers. It is never to be seen.
const secret = "T0KEN-never-to-be-seen"

// hook is a webhook that answers as f says, with what it was sent.
type hook struct {
	*httptest.Server
	bodies []string
	kinds  []string
	auth   []string
}

func serve(t *testing.T, f http.HandlerFunc) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.bodies, h.kinds, h.auth = append(h.bodies, string(body)), append(h.kinds, r.Header.Get("Content-Type")), append(h.auth, r.Header.Get("Authorization"))
		f(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func takes(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func answers(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
}

// world is a target with a clock that tests move.
type world struct {
	*target
	now      time.Time
	fence    uint64
	leads    bool
	standing []report.Notice
	log      bytes.Buffer
	reg      *prometheus.Registry
}

var start = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, w Webhook) *world {
	t.Helper()
	world := &world{now: start, fence: 7, leads: true, reg: prometheus.NewPedanticRegistry()}
	w.Name = "on-call"
	o := &Options{
		Title: "berlin", Source: "urn:ingot:berlin", Clock: func() time.Time { return world.now },
		Leading: func() bool { return world.leads }, Fence: func() uint64 { return world.fence },
		Link: func(object, name string) string { return "https://ingot.example/" + object + "s/" + name },
		Log:  slog.New(slog.NewTextHandler(&world.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	world.target = newTarget(w, o, newMetrics(world.reg).of(w.Name), filepath.Join(t.TempDir(), "notify", "on-call.json"))
	t.Cleanup(func() {
		if strings.Contains(world.log.String(), secret) {
			t.Errorf("the secret is in the log:\n%s", world.log.String())
		}
	})
	return world
}

// restarted is the same after a restart.
func (w *world) restarted(t *testing.T) *world {
	t.Helper()
	again := newWorld(t, w.Webhook)
	again.file, again.now, again.fence, again.standing = w.file, w.now, w.fence+1, w.standing
	return again
}

// pass has a time go by, with a step each second.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
		w.step(t.Context(), &w.standing)
	}
}

func trouble(name string) report.Notice {
	return report.Notice{
		ID: "id-of-" + name, Kind: report.NoticeServerError, Object: "server", Name: name, Reason: "BootFailed", Since: start, Message: "it hangs",
	}
}

// secretURL is the address of a webhook, which has a secret, in a file.
func secretURL(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	put(t, file, address+"/services/T0/"+secret+"\n")
	return file
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestANoticeIsSentOnceAlsoOverARestart(t *testing.T) {
	h := serve(t, takes)
	w := newWorld(t, Webhook{URLFile: secretURL(t, h.URL), Format: FormatSlack})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, time.Hour)
	if len(h.bodies) != 1 {
		t.Fatalf("%d requests, want 1", len(h.bodies))
	}
	again := w.restarted(t)
	again.pass(t, time.Hour)
	if len(h.bodies) != 1 {
		t.Errorf("%d requests after a restart", len(h.bodies))
	}
	again.standing = append(again.standing, trouble("s2"))
	again.pass(t, time.Minute)
	if len(h.bodies) != 2 || !strings.Contains(h.bodies[1], "s2") {
		t.Errorf("was told %q", h.bodies)
	}
}

func TestWhoDoesNotLeadTellsNothing(t *testing.T) {
	h := serve(t, takes)
	w := newWorld(t, Webhook{URL: h.URL})
	w.standing = []report.Notice{trouble("s1")}
	w.leads = false
	w.pass(t, time.Minute)
	w.fence = 0
	w.leads = true
	w.pass(t, time.Minute)
	w.step(t.Context(), nil)
	if len(h.bodies) != 0 {
		t.Errorf("was told %q", h.bodies)
	}
}

func TestTheCloudEvent(t *testing.T) {
	h := serve(t, takes)
	w := newWorld(t, Webhook{URL: h.URL, Resolved: true})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, time.Second)
	w.standing = nil
	w.pass(t, 2*time.Minute)
	for i := range 60 {
		w.standing = append(w.standing, trouble(fmt.Sprintf("r%02d", i)))
	}
	w.pass(t, time.Second)
	if diff := cmp.Diff([]string{"application/cloudevents+json", "application/cloudevents+json", "application/cloudevents+json"}, h.kinds); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	const want = `{"specversion":"1.0","id":"id-of-s1","source":"urn:ingot:berlin","type":"ingot.ServerError","subject":"server/s1",` +
		`"time":"2026-11-26T08:00:00Z","datacontenttype":"application/json","data":{"title":"berlin","kind":"ServerError","state":"begun","count":1,` +
		`"notices":[{"id":"id-of-s1","kind":"ServerError","object":"server","name":"s1","reason":"BootFailed","since":"2026-11-26T08:00:00Z",` +
		`"message":"it hangs","link":"https://ingot.example/servers/s1"}]}}`
	if diff := cmp.Diff(want, h.bodies[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var ended, many cloudEvent
	if json.Unmarshal([]byte(h.bodies[1]), &ended) != nil || ended.ID != "id-of-s1-ended" || ended.Type != "ingot.ServerError.ended" || ended.Data.State != stateEnded {
		t.Errorf("got %s", h.bodies[1])
	}
	if json.Unmarshal([]byte(h.bodies[2]), &many) != nil || many.Subject != "" || many.Data.Count != 60 || len(many.Data.Notices) != maxListed || many.Data.More != 60-maxListed {
		t.Errorf("got %s", h.bodies[2])
	}
}

func TestTheTextForSlack(t *testing.T) {
	h := serve(t, takes)
	w := newWorld(t, Webhook{URL: h.URL, Format: FormatSlack, Resolved: true})
	hostile := trouble("s1")
	hostile.Message = "<!channel> & @here\nsee <http://evil.example|this>\x07"
	booted := trouble("default/web")
	booted.Kind, booted.Object, booted.Message = report.NoticeClaimBooted, "claim", "on server s9"
	w.standing = []report.Notice{hostile, booted}
	w.pass(t, 2*time.Second)
	w.standing = nil
	w.pass(t, 2*time.Minute)
	for i := range 12 {
		w.standing = append(w.standing, trouble(fmt.Sprintf("r%02d", i)))
	}
	w.opts.Link = nil
	w.pass(t, time.Second)
	want := []string{
		"*berlin*: Server <https://ingot.example/servers/s1|s1> is in Error since 2026-11-26T08:00:00Z (BootFailed): " +
			"&lt;!channel&gt; &amp; @\u200bhere see &lt;http://evil.example|this&gt;",
		"*berlin*: Claim <https://ingot.example/claims/default/web|default/web> is Booted on server s9",
		"*berlin*: Server <https://ingot.example/servers/s1|s1> is in Error no more",
		"*berlin*: 12 servers are in Error: r00, r01, r02, r03, r04, r05, r06, r07, r08, r09 and 2 more",
	}
	var got []string
	for _, body := range h.bodies {
		var m map[string]string
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m["text"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEveryKindHasAHeadline(t *testing.T) {
	for _, k := range report.NoticeKinds() {
		if h := headlines[k]; h.one == "" || h.several == "" || (h.ended == "") == k.IsTrouble() {
			t.Errorf("%s: %+v", k, h)
		}
	}
}

func TestAWebhookThatFailsIsLeftAloneForLongerAndLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  http.HandlerFunc
		within  time.Duration
		most    int // requests
		least   int
		outcome outcome
		text    string // in the log
	}{
		"with trouble of its own": {
			answer: answers(500, "down for repair"), within: time.Hour, least: 8, most: 13, outcome: outcomeUnavailable,
			text: "the webhook has trouble of its own (500): down for repair",
		},
		"that says when to come back": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1200")
				w.WriteHeader(503)
			},
			within: time.Hour, least: 3, most: 3, outcome: outcomeUnavailable, text: "again=20m0s",
		},
		"that says to come back next year": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "99999999")
				w.WriteHeader(429)
			},
			within: 3 * time.Hour, least: 3, most: 3, outcome: outcomeThrottled, text: "again=1h0m0s",
		},
		"that refuses us": {
			answer: answers(403, "no "+secret+" here"), within: 2 * time.Hour, least: 4, most: 4, outcome: outcomeRefused,
			text: "does not take notices with this address and these headers (403): no … here",
		},
		"that nobody listens at": {
			within: time.Hour, outcome: outcomeUnavailable, text: "the webhook cannot be reached: dial tcp 127.0.0.1:",
		},
		"that is elsewhere": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere/"+secret, http.StatusTemporaryRedirect)
			},
			within: time.Hour, least: 2, most: 2, outcome: outcomeRefused, text: "no secret is sent there: correct its address (307)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, tc.answer)
			w := newWorld(t, Webhook{URLFile: secretURL(t, h.URL)})
			if tc.answer == nil {
				h.Close()
			}
			w.standing = []report.Notice{trouble("s1")}
			w.pass(t, tc.within)
			if n := len(h.bodies); n < tc.least || n > tc.most {
				t.Errorf("%d requests, want %d to %d", n, tc.least, tc.most)
			}
			if !strings.Contains(w.log.String(), tc.text) || strings.Count(w.log.String(), "level=WARN") > 3 {
				t.Errorf("the log does not say %q, or all the time:\n%s", tc.text, w.log.String())
			}
			if n := counted(w, tc.outcome); n != len(h.bodies) && tc.answer != nil {
				t.Errorf("%d are counted as %s", n, tc.outcome)
			}
		})
	}
}

// counted is how many attempts had an outcome.
func counted(w *world, o outcome) int {
	all, _ := w.reg.Gather()
	for _, family := range all {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == "ingot_notify_total" && l.GetValue() == string(o) {
					return int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return 0
}

func TestANoticeThatIsNeverTakenIsDropped(t *testing.T) {
	bad := true
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if bad {
			w.WriteHeader(500)
		}
	})
	w := newWorld(t, Webhook{URL: h.URL})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, 24*time.Hour+11*time.Minute)
	if n := testutil.ToFloat64(w.counts.dropped); n != 1 || counted(w, outcomeGivenUp) != 1 || !strings.Contains(w.log.String(), "notice given up") {
		t.Errorf("%v dropped\n%s", n, w.log.String())
	}
	bad = false
	n := len(h.bodies)
	w.standing = append(w.standing, trouble("s2"))
	w.pass(t, time.Hour)
	if len(h.bodies) != n+1 || !strings.Contains(h.bodies[n], "s2") {
		t.Errorf("was told %q then", h.bodies[n:])
	}
}

func TestANoticeThatIsRejectedHoldsUpNoOther(t *testing.T) {
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	w := newWorld(t, Webhook{URL: h.URL})
	first := trouble("a1")
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.bodies = append(h.bodies, string(body))
		if strings.Contains(string(body), `"a1"`) {
			http.Error(w, "invalid_payload", http.StatusBadRequest)
		}
	})
	w.standing = []report.Notice{first, trouble("s2")}
	w.pass(t, 10*time.Minute)
	if n := len(h.bodies); n != maxRefusals+1 || !strings.Contains(h.bodies[n-1], "s2") || testutil.ToFloat64(w.counts.dropped) != 1 {
		t.Errorf("was told %q", h.bodies)
	}
}

func TestACorrectedAddressIsTriedAtOnce(t *testing.T) {
	wrong, right := serve(t, answers(404, "no_service")), serve(t, takes)
	w := newWorld(t, Webhook{URLFile: secretURL(t, wrong.URL)})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, time.Minute)
	put(t, w.URLFile, right.URL)
	w.pass(t, 2*time.Second)
	if len(wrong.bodies) != 1 || len(right.bodies) != 1 {
		t.Errorf("%d requests to the wrong one, %d to the right one", len(wrong.bodies), len(right.bodies))
	}
}

func TestWhatCannotBeUsedIsSaid(t *testing.T) {
	h := serve(t, takes)
	text := filepath.Join(t.TempDir(), "text")
	put(t, text, secret)
	long := filepath.Join(t.TempDir(), "long")
	put(t, long, strings.Repeat("x", maxSecret+1))
	for name, tc := range map[string]struct {
		hook Webhook
		want string
	}{
		"an address that is none": {hook: Webhook{URLFile: text}, want: "the address of the webhook is no URL with http:// or https://; it is to be one line"},
		"a file that is not there": {
			hook: Webhook{URLFile: "/nowhere/url"}, want: "read urlFile: open /nowhere/url: no such file or directory",
		},
		"a file that is too large": {hook: Webhook{URLFile: long}, want: fmt.Sprintf("read urlFile: read %s: it is larger than %d bytes; is it the right file?", long, maxSecret)},
		"headers that are none":    {hook: Webhook{URL: h.URL, Header: text}, want: "headerFile " + text + ":1 is no header line, such as Authorization: Bearer TOKEN"},
		"certificates that are none": {
			hook: Webhook{URL: h.URL, CAFile: text}, want: "caFile " + text + " holds no certificate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.hook)
			w.standing = []report.Notice{trouble("s1")}
			w.pass(t, time.Second)
			if !strings.Contains(w.log.String(), tc.want) || len(h.bodies) != 0 || counted(w, outcomeMisconfigured) != 1 {
				t.Errorf("got %s\nwant %s", w.log.String(), tc.want)
			}
		})
	}
}

func TestHeadersAndCertificatesAreUsed(t *testing.T) {
	var auth string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { auth = r.Header.Get("Authorization") }))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	dir := t.TempDir()
	headers, ca := filepath.Join(dir, "headers"), filepath.Join(dir, "ca")
	put(t, headers, "Authorization: Bearer "+secret+"\n\n")
	put(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w := newWorld(t, Webhook{URL: server.URL, Header: headers, CAFile: ca})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, time.Second)
	if auth != "Bearer "+secret || counted(w, outcomeSent) != 1 {
		t.Errorf("sent %q\n%s", auth, w.log.String())
	}
	stranger := newWorld(t, Webhook{URL: server.URL, Header: headers})
	stranger.standing = w.standing
	stranger.pass(t, time.Second)
	if counted(stranger, outcomeUnavailable) != 1 || !strings.Contains(stranger.log.String(), "certificate signed by unknown authority") {
		t.Errorf("an unknown certificate was trusted\n%s", stranger.log.String())
	}
}

func TestAMemoryThatIsBrokenTellsNothingAgain(t *testing.T) {
	h := serve(t, takes)
	w := newWorld(t, Webhook{URL: h.URL})
	w.standing = []report.Notice{trouble("s1")}
	w.pass(t, time.Minute)
	put(t, w.file, "{")
	again := w.restarted(t)
	again.now = again.now.Add(time.Hour)
	again.pass(t, time.Minute)
	if len(h.bodies) != 1 || !strings.Contains(again.log.String(), "what was sent to a webhook cannot be read") {
		t.Errorf("%d requests\n%s", len(h.bodies), again.log.String())
	}
}

func TestTheMetricsOfNoticesAreWellNamed(t *testing.T) {
	w := newWorld(t, Webhook{})
	if problems, err := testutil.GatherAndLint(w.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

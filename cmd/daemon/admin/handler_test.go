package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

var (
	discard   = slog.New(slog.DiscardHandler)
	noMetrics = prometheus.NewRegistry()
)

func ask(o Options, method, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	o.Log = slog.New(slog.DiscardHandler)
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Fleet == nil {
		o.Fleet = &live{fleet: &report.Fleet{Problems: []model.Problem{}}}
	}
	if o.Index == nil {
		o.Index = NewIndex(o.Fleet)
	}
	r := httptest.NewRequest(method, "http://localhost:8080"+target, nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	NewHandler(o).ServeHTTP(w, r)
	return w
}

func asJSON(r *http.Request) { r.Header.Set("Accept", "application/json") }

func TestHealthIsThatItAnswers(t *testing.T) {
	broken := Check{Name: "store", Do: func(context.Context) error { return errors.New("gone") }}
	w := ask(Options{Checks: []Check{broken}}, http.MethodGet, "/healthz")
	if w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}

func TestReadyIsThatEveryCheckPasses(t *testing.T) {
	plain := func(*http.Request) {}
	fine := Check{Name: "git", Do: func(context.Context) error { return nil }}
	broken := Check{Name: "store", Do: func(context.Context) error { return errors.New("redis does not answer") }}
	odd := Check{Name: "loaders", Do: func(context.Context) error { return Remark("no boot loader") }}
	for name, tc := range map[string]struct {
		checks []Check
		as     func(*http.Request)
		code   int
		body   string
	}{
		"all pass": {
			checks: []Check{fine}, as: plain, code: 200, body: "git: ready\n",
		},
		"one does not": {
			checks: []Check{fine, broken}, as: plain, code: 503, body: "git: ready\nstore: not ready: redis does not answer\n",
		},
		"for a program": {
			checks: []Check{fine}, as: asJSON, code: 200, body: `{"ready":true,"checks":[{"name":"git"}]}`,
		},
		"one has to be looked at, and is ready": {
			checks: []Check{odd}, as: plain, code: 200, body: "loaders: ready, but no boot loader\n",
		},
		"for a program, which has to be looked at": {
			checks: []Check{odd}, as: asJSON, code: 200, body: `{"ready":true,"checks":[{"name":"loaders","remark":"no boot loader"}]}`,
		},
		"for a program, not": {
			checks: []Check{broken}, as: asJSON, code: 503,
			body: `{"ready":false,"checks":[{"name":"store","error":"redis does not answer"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(Options{Checks: tc.checks}, http.MethodGet, "/readyz", tc.as)
			body := w.Body.String()
			if w.Header().Get("Content-Type") == "application/json" {
				body = compact(t, body)
			}
			if w.Code != tc.code || body != tc.body {
				t.Errorf("got  %d %q\nwant %d %q", w.Code, body, tc.code, tc.body)
			}
		})
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var v readiness
	must.Do(t, json.Unmarshal([]byte(text), &v))
	b := must.Get(json.Marshal(v))(t)
	return string(b)
}

func TestNothingCanBeChanged(t *testing.T) {
	o := Options{}
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/api/v1/fleet"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if w := ask(o, method, path); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s got %d", method, path, w.Code)
			}
		}
	}
}

func TestABrokenMetricDoesNotHideTheOthers(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(twice{})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ingot_fine"}, func() float64 { return 1 }))
	w := ask(Options{Metrics: reg}, http.MethodGet, "/metrics")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "ingot_fine 1\n") {
		t.Errorf("got %d\n%s", w.Code, w.Body)
	}
}

func TestScrapeCutOffIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := make(chan struct{})
		reg := prometheus.NewRegistry()
		for i := range 10 {
			reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: fmt.Sprintf("gauge_%d", i)}, func() float64 {
				cancel()
				<-left
				return 1
			}))
		}
		var log bytes.Buffer
		fleet := newLive(0)
		h := NewHandler(Options{Metrics: reg, Fleet: fleet, Index: NewIndex(fleet), Log: slog.New(slog.NewTextHandler(&log, nil))})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		close(left)
		synctest.Wait()
		if strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("want one warning, logged:\n%s", log.String())
		}
	})
}

// twice is a collector that sends the same series twice, which is an error.
type twice struct{}

var twiceDesc = prometheus.NewDesc("ingot_twice", "The same series two times.", nil, nil)

func (twice) Describe(ch chan<- *prometheus.Desc) { ch <- twiceDesc }

func (twice) Collect(ch chan<- prometheus.Metric) {
	for range 2 {
		ch <- prometheus.MustNewConstMetric(twiceDesc, prometheus.GaugeValue, 1)
	}
}

func TestAnAnswerThatIsNotReadIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"/api/v1/fleet", "/api/v1/servers", "/healthz"} {
			p, shutDown := served(t, newLive(100))
			conn := p.dial()
			must.Get(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path))(t)
			time.Sleep(answerTimeout + time.Second)
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("%s is still being answered after %s", path, answerTimeout)
			}
			conn.Close()
			shutDown()
		}
	})
}

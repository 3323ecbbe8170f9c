package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"ingot/reconcile/report"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkLimit is how long one readiness check may take.
const checkLimit = 3 * time.Second

// A check says whether one part is ready: nil, or why it is not.
type check struct {
	name string
	do   func(context.Context) error
}

// admin is what the admin listener shows. It changes nothing.
type admin struct {
	metrics  prometheus.Gatherer
	checks   []check // in the order in which they are shown
	summary  func() report.Summary
	explain  func(kind, name string) (report.Explanation, error)
	loopback bool // the listener is on a loopback address
	log      *slog.Logger
}

// handler serves /metrics, /healthz, /readyz, /api/v1/status and /api/v1/explain, all
// by GET.
func (a admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		CoalesceGather:      true,
		Timeout:             30 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		a.writeJSON(w, http.StatusOK, a.summary().WithLists())
	})
	mux.HandleFunc("GET /api/v1/explain/{kind}/{name...}", a.explainObject)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, http.StatusOK, "Ingot\n\n/api/v1/status\n/api/v1/explain/{kind}/{name}\n/metrics\n/healthz\n/readyz\n")
	})
	if a.loopback {
		return loopbackOnly(mux)
	}
	return mux
}

// readiness is what /readyz answers.
type readiness struct {
	Ready  bool          `json:"ready"`
	Checks []checkResult `json:"checks"`
}

type checkResult struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"` // empty when ready
}

func (a admin) ready(w http.ResponseWriter, r *http.Request) {
	result := runChecks(r.Context(), a.checks)
	code := http.StatusOK
	if !result.Ready {
		code = http.StatusServiceUnavailable
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		a.writeJSON(w, code, result)
		return
	}
	writeText(w, code, result.String())
}

// runChecks runs all checks at once, each for checkLimit at most.
func runChecks(ctx context.Context, checks []check) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	result := readiness{Ready: true, Checks: make([]checkResult, len(checks))}
	var wg sync.WaitGroup
	for i, c := range checks {
		result.Checks[i].Name = c.name
		wg.Go(func() {
			if err := c.do(ctx); err != nil {
				result.Checks[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	for _, c := range result.Checks {
		result.Ready = result.Ready && c.Error == ""
	}
	return result
}

// String returns a line for each check.
func (r readiness) String() string {
	var b strings.Builder
	for _, c := range r.Checks {
		state := "ready"
		if c.Error != "" {
			state = "not ready: " + c.Error
		}
		fmt.Fprintf(&b, "%s: %s\n", c.Name, state)
	}
	return b.String()
}

// loopbackOnly refuses requests for a foreign host name. A page in a browser on
// this machine could else read what is here: its name resolves to loopback once
// it is loaded (DNS rebinding).
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesLoopback(r.Host) {
			writeText(w, http.StatusForbidden, "this listener answers to localhost, 127.0.0.1 and [::1] only\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesLoopback reports whether host, with or without a port, is localhost or a
// loopback address.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// isLoopback reports whether a listener can be reached from this machine only.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func (a admin) writeJSON(w http.ResponseWriter, code int, body any) {
	data, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		a.log.Error("status cannot be written as JSON", "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, code, append(data, '\n'))
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	write(w, code, []byte(text))
}

func write(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that went away is no matter of ours
}

// explainObject answers GET /api/v1/explain/KIND/NAME.
func (a admin) explainObject(w http.ResponseWriter, r *http.Request) {
	e, err := a.explain(r.PathValue("kind"), r.PathValue("name"))
	switch {
	case err == nil:
		a.writeJSON(w, http.StatusOK, e)
	case errors.Is(err, report.ErrUnknownObject):
		writeText(w, http.StatusNotFound, err.Error()+"\n")
	default:
		writeText(w, http.StatusBadRequest, err.Error()+"\n")
	}
}

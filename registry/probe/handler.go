package probe

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// Registry is the part of the registry that the endpoint needs.
type Registry interface {
	// Namesakes returns the servers with this canonical system UUID, in either byte order:
	// each with its newest boot ticket, and how far it has come with that.
	Namesakes(uuid string) []model.TicketHolder
	// SaveReport makes what a server reported with its ticket durable, unless it is no
	// news. The error is model.ErrTicketSpent when the ticket has ended meanwhile.
	SaveReport(ctx context.Context, t *model.Ticket, report model.ServerReport) error
	// Use notes that a ticket, or nil, was asked for something.
	Use(t *model.Ticket, what model.TicketThing, by model.Asker, refusal model.TicketRefusal)
	// Probe returns the report of a server's probe, nil if it has none.
	Probe(server model.ServerName) *model.ProbeReport
}

// Options are what the endpoint needs. The zero value of a field means its default.
type Options struct {
	Registry Registry
	// Tokens makes the tokens of boot tickets.
	Tokens model.TokenKey
	// Bound says who reports from an address, and whether a server may do so: "" or why
	// not, and a sentence for people. It is asked for servers that are known, before
	// anything is answered about them; nil lets everybody report.
	Bound func(holder model.TicketHolder, client netip.Addr) (model.Asker, model.TicketRefusal, string)
	// MaxBody is the size of the largest report in bytes; default 4 MiB.
	MaxBody int64

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

func (o Options) withDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 4<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Handler serves what probes report to: with the token of a boot ticket in the
// path as /r/{token}/register, /bootstate, /wipe, /wipe-progress and /install. Upstream's paths without a token are
// refused.
func Handler(o Options) http.Handler { return newEndpoint(o).handler() }

type endpoint struct {
	Options
	metrics *metrics
	bodies  *bodies
}

func newEndpoint(o Options) *endpoint {
	return &endpoint{Options: o.withDefaults(), metrics: newMetrics(o.Registerer), bodies: newBodies()}
}

func (e *endpoint) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /r/{token}/register", e.serve(model.ThingReport, e.register))
	mux.HandleFunc("POST /r/{token}/bootstate", e.serve(model.ThingBootState, e.bootState))
	mux.HandleFunc("GET /r/{token}/systems/{uuid}", e.serve(model.ThingReport, e.system))
	mux.HandleFunc("POST /r/{token}/wipe", e.serve(model.ThingWipe, e.wipe))
	mux.HandleFunc("POST /r/{token}/wipe-progress", e.serve(model.ThingReport, e.wipeProgress)) // no result yet
	mux.HandleFunc("POST /r/{token}/install", e.serve(model.ThingReport, e.install))
	refused := func(*request) (answer, error) {
		return answer{}, refusal{http.StatusForbidden, needToken, model.RefusedToken}
	}
	mux.HandleFunc("POST /register", e.serve(model.ThingReport, refused))
	mux.HandleFunc("POST /bootstate", e.serve(model.ThingBootState, refused))
	mux.HandleFunc("GET /systems/{uuid}", e.serve(model.ThingReport, refused))
	mux.HandleFunc("DELETE /delete/{uuid}", e.serve(model.ThingReport, refused))
	return e.counted(mux)
}

// counted counts answers by path and code. Nothing of a path that may be a token
// goes further.
func (e *endpoint) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(seen, req)
		path := pathLabel(req.URL.Path)
		e.metrics.requests.WithLabelValues(path, strconv.Itoa(seen.code)).Inc()
		gone := req.Context().Err() != nil // a client that went away is why, then
		if seen.code >= http.StatusInternalServerError && !gone {
			e.Log.Warn("report not accepted", "path", path, "code", seen.code, "client", req.RemoteAddr)
		}
	})
}

// statusWriter remembers the status code of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController see the writer below.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pathLabel names what was asked for, without token and UUID.
func pathLabel(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if parts[0] == "r" && len(parts) > 2 {
		parts = parts[2:]
	}
	if slices.Contains([]string{"register", "bootstate", "wipe", "wipe-progress", "install", "systems", "delete"}, parts[0]) {
		return parts[0]
	}
	return "other"
}

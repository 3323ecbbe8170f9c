package admin

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"ingot/model"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// Fleet is what the API shows.
type Fleet interface {
	Summary() report.Summary
	// CommitStatus is what Summary says of commit statuses at the Git host, which Rows do not
	// have; nil when all is well.
	CommitStatus() *report.Trouble
	// Explain explains one object. For one that is not known the error is
	// report.ErrUnknownObject.
	Explain(kind, name string) (report.Explanation, error)
	// Card returns a network card and its conversation, and false when nothing is known of it.
	Card(mac string) (report.Card, bool)
	// Rows are the lists of the newest report, the same ones while nothing in them changed.
	// They are shared: nobody changes them, nor those below.
	Rows() *query.Rows
	// Networks are the names of the networks that are configured.
	Networks() []string
	Leases() []*query.Lease
	Pools() []*query.Pool
	Images() []*query.Image
	// Changed returns a channel that is closed once Rows may return others.
	Changed() <-chan struct{}
}

// Options are the options of NewHandler.
type Options struct {
	Metrics prometheus.Gatherer
	Checks  []Check // in the order in which they are shown
	Fleet   Fleet
	Log     *slog.Logger
	// Page is the web page, which answers whatever nothing else does; nil = there is none.
	Page http.Handler
	// Closing is closed when the listener is about to close: who is told of changes is let go
	// then. nil = never.
	Closing <-chan struct{}
}

// NewHandler returns the handler of the admin listener, for all who get that far: package
// access lets them through. It serves /metrics, /healthz, /readyz and /api/v1, all by GET.
func NewHandler(o Options) http.Handler {
	h := &handler{checks: o.Checks, fleet: o.Fleet, log: o.Log, process: rand.Text()[:8]}
	mux := http.NewServeMux()
	metrics := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := o.Metrics.Gather()
		if err != nil {
			o.Log.Warn("some metrics are missing", "err", err)
		}
		return families, nil // what there is: one wrong series must not hide all others
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.HTTPErrorOnError, // one line for a scrape that is cut off
		MaxRequestsInFlight: 4,
		CoalesceGather:      true,
		Timeout:             30 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /api/v1/status", h.status)
	mux.HandleFunc("GET /api/v1/explain/{kind}/{name...}", h.explain)
	mux.HandleFunc("GET /api/v1/cards/{mac}", h.card)
	h.serveLists(mux)
	h.serveEvents(mux, o.Closing)
	serveOpenAPI(mux)
	if o.Page != nil {
		mux.Handle("GET /", o.Page)
		mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) { // a program asks, and reads no page
			writeText(w, http.StatusNotFound, r.URL.Path+" is no path of the API; see /api/v1/openapi.json\n")
		})
	}
	return inTime(mux)
}

// answerTimeout is how long an answer may take until the client has read it. Those who are
// told of changes have a time of their own for each event.
const answerTimeout = time.Minute

// inTime bounds how long answers take: one that nobody reads would be kept in memory for ever.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// the brief answer of /readyz has no deadline, and needs none
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
		next.ServeHTTP(w, r)
	})
}

type handler struct {
	checks []Check
	fleet  Fleet
	log    *slog.Logger
	// process tells what this process says from what others say: it is part of each tag.
	process    string
	statusBody statusBody
}

// explain answers GET /api/v1/explain/KIND/NAME.
func (h *handler) explain(w http.ResponseWriter, r *http.Request) {
	e, err := h.fleet.Explain(r.PathValue("kind"), r.PathValue("name"))
	switch {
	case err == nil:
		h.answer(w, r, "", e)
	case errors.Is(err, report.ErrUnknownObject):
		writeText(w, http.StatusNotFound, err.Error()+"\n")
	default:
		writeText(w, http.StatusBadRequest, err.Error()+"\n")
	}
}

// card answers GET /api/v1/cards/MAC.
func (h *handler) card(w http.ResponseWriter, r *http.Request) {
	mac, ok := model.ParseMAC(r.PathValue("mac"))
	if !ok {
		writeText(w, http.StatusBadRequest, fmt.Sprintf("%q is no MAC address: write it as 02:00:00:00:00:0a\n", r.PathValue("mac")))
		return
	}
	card, known := h.fleet.Card(mac.String())
	if !known {
		writeText(w, http.StatusNotFound, "the network card "+mac.String()+" is not known: it asked this process for nothing, and no server has it\n")
		return
	}
	h.answer(w, r, "", card)
}

func (h *handler) writeJSON(w http.ResponseWriter, code int, body any) {
	data, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		h.log.Error("answer cannot be written as JSON", "err", err)
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
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

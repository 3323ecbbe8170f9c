package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"ingot/model"
	"ingot/reconcile/report"
)

// Fleet is what the API shows.
type Fleet interface {
	// Documents are those of the newest report, the same pointer while nothing changed. They are
	// shared: callers must not change them. Fleet is never nil.
	Documents() *report.Documents
	// Changed returns a channel that is closed once Documents may return others.
	Changed() <-chan struct{}
	// Card returns a network card and its log, and false if it is unknown.
	Card(mac string) (report.Card, bool)
	Leases() []report.LeaseRow
	Pools() []report.PoolRow
	Images() []report.ImageRow
}

// Options are the options of NewHandler.
type Options struct {
	Metrics prometheus.Gatherer
	Checks  []Check // in the order in which they are shown
	Fleet   Fleet
	Index   *Index // of Fleet
	Log     *slog.Logger
	// Page is the web page, which answers whatever nothing else does; nil = there is none.
	Page http.Handler
	// Closing is closed when the listener is about to close: who is told of changes is let go
	// then. nil = never.
	Closing <-chan struct{}
}

// NewHandler returns the handler of the admin listener, for requests that package access
// authorized. It serves /metrics, /healthz, /readyz and /api/v1, all by GET.
func NewHandler(o Options) http.Handler {
	h := &handler{checks: o.Checks, fleet: o.Fleet, log: o.Log}
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
	h.serveDocuments(mux, o.Index)
	mux.Handle("GET /api/v1/events", newEvents(o.Index, o.Fleet.Changed, o.Closing))
	mux.HandleFunc("GET /api/v1/cards/{mac}", h.card)
	serveRows(h, mux, "leases", h.fleet.Leases)
	serveRows(h, mux, "pools", h.fleet.Pools)
	serveRows(h, mux, "images", h.fleet.Images)
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, description()) })
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) { // a program asks, and reads no page
		writeText(w, http.StatusNotFound, r.URL.Path+" is not a path of the API; see /api/v1/openapi.json\n")
	})
	if o.Page != nil {
		mux.Handle("GET /", o.Page)
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
}

// card answers GET /api/v1/cards/MAC.
func (h *handler) card(w http.ResponseWriter, r *http.Request) {
	mac, ok := model.ParseMAC(r.PathValue("mac"))
	if !ok {
		writeText(w, http.StatusBadRequest, fmt.Sprintf("%q is not a MAC address: write it as 02:00:00:00:00:0a\n", r.PathValue("mac")))
		return
	}
	card, known := h.fleet.Card(mac.String())
	if !known {
		writeText(w, http.StatusNotFound, "the network card "+mac.String()+" is unknown: it sent no request to this process, and no server has it\n")
		return
	}
	h.answer(w, r, card)
}

// answer writes a body as JSON, with the ETag of its content.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, body any) {
	data, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		h.log.Error("response not encoded as JSON", "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	if !unchanged(w, r, tagOf(data)) {
		w.Header().Set("Content-Type", "application/json")
		write(w, http.StatusOK, append(data, '\n'))
	}
}

func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// unchanged answers 304 if the client has the content of a tag, and reports whether it did (RFC 9110
// §13.1.2). Clients must ask each time whether their copy is current.
func unchanged(w http.ResponseWriter, r *http.Request, etag string) bool {
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "private, no-cache")
	for one := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	write(w, code, []byte(text))
}

func write(w http.ResponseWriter, code int, body []byte) {
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

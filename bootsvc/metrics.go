package bootsvc

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/imagecache"
	"ingot/model"
)

// metrics are what the HTTP server counts.
type metrics struct {
	requests     *prometheus.CounterVec // by route and code
	routes       map[string]routeMetrics
	imageBytes   *prometheus.CounterVec // by source
	installBytes *prometheus.CounterVec // by kind
	refusals     *prometheus.CounterVec // by what was asked for and reason
	rescues      prometheus.Counter
}

// routeMetrics are those of one route that almost every request counts: to find them by
// their labels each time costs more than to count. They are there once they are asked for.
type routeMetrics struct {
	ok   func() prometheus.Counter
	took func() prometheus.Observer
}

func newMetrics(reg prometheus.Registerer) metrics {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ingot_boot_request_duration_seconds",
		Help:    "Duration of requests from booting machines, images to their last byte.",
		Buckets: []float64{.001, .01, .1, 1, 10, 60, 300},
	}, []string{"route"})
	m := metrics{
		routes: make(map[string]routeMetrics),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_requests_total",
			Help: "Requests from booting machines, by route and status code; code aborted is a response cut off before its end.",
		}, []string{"route", "code"}),
		imageBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_image_bytes_total",
			Help: "Bytes of image layers sent to booting machines, by where they came from: disk (the cache), or registry (a fetch in progress, or streamed past the cache).",
		}, []string{"source"}),
		installBytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_install_bytes_total",
			Help: "Bytes sent to probes that write disk images, by kind: document, table (of chunks), or chunks.",
		}, []string{"kind"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_ticket_refusals_total",
			Help: "Requests that a boot ticket did not allow, by what was requested and reason; Replay is a server that asks again and is sent on to its disk.",
		}, []string{"what", "reason"}),
		rescues: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_boot_rescue_scripts_total",
			Help: "Rescue scripts served to machines that are not servers of Ingot.",
		}),
	}
	for _, at := range append(routes, unknownPath) {
		m.routes[at.pattern] = routeMetrics{
			ok:   sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(at.pattern, codeText(http.StatusOK)) }),
			took: sync.OnceValue(func() prometheus.Observer { return durations.WithLabelValues(at.pattern) }),
		}
	}
	m.start()
	if reg != nil {
		reg.MustRegister(m.requests, durations, m.imageBytes, m.installBytes, m.refusals, m.rescues)
	}
	return m
}

// start has the counters begin at zero, so that their first event is an increase.
func (m *metrics) start() {
	for _, at := range append(routes, unknownPath) {
		m.requests.WithLabelValues(at.pattern, codeText(http.StatusOK))
	}
	for _, source := range []imagecache.Source{imagecache.FromDisk, imagecache.FromRegistry} {
		m.imageBytes.WithLabelValues(string(source))
	}
	for _, kind := range []string{installDocument, installTable, installChunks} {
		m.installBytes.WithLabelValues(kind)
	}
	for _, what := range []model.TicketThing{model.ThingScript, model.ThingIgnition, model.ThingCloudInit, model.ThingImage, model.ThingInstall} {
		for _, reason := range model.TicketRefusals {
			m.refusals.WithLabelValues(string(what), string(reason))
		}
	}
}

// codeAborted stands for an answer that was cut off before its end.
const codeAborted = -1

func codeText(code int) string {
	if code == codeAborted {
		return "aborted"
	}
	return strconv.Itoa(code)
}

// served counts a request of a route that took so long.
func (m *metrics) served(at *route, code int, took time.Duration) {
	of := m.routes[at.pattern]
	of.took().Observe(took.Seconds())
	if code == http.StatusOK {
		of.ok().Inc()
		return
	}
	m.requests.WithLabelValues(at.pattern, codeText(code)).Inc()
}

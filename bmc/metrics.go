package bmc

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the package's metrics. Nothing in their labels comes from outside
// but a status code, which is bounded.
type metrics struct {
	requests    *prometheus.CounterVec
	duration    prometheus.Histogram
	sessions    prometheus.Counter
	connections prometheus.Counter
}

// newMetrics registers the metrics with reg, if there is one. open tells how many
// circuit breakers are open, limit is Options.RequestsPerSecond.
func newMetrics(reg prometheus.Registerer, open func() float64, limit float64) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_redfish_requests_total",
			Help: "Requests sent to BMCs, by HTTP status code (\"none\" = no answer) and method.",
		}, []string{"code", "method"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ingot_redfish_request_duration_seconds",
			Help:    "Time from sending a request to a BMC until the whole response was read.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 60},
		}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_redfish_sessions_opened_total",
			Help: "Redfish sessions opened.",
		}),
		connections: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_redfish_connections_opened_total",
			Help: "TCP connections to BMCs opened.",
		}),
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		m.requests.WithLabelValues(codeLabel(0), method)
		m.requests.WithLabelValues(codeLabel(http.StatusUnauthorized), method)
	}
	circuit := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_redfish_circuit_open",
		Help: "Credentials that BMCs refused and that are currently not tried.",
	}, open)
	budget := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ingot_redfish_requests_per_second_limit",
		Help: "Maximum requests per second to one BMC (bmc.requestsPerSecond); a slow BMC is sent fewer. 0 = no limit.",
	})
	budget.Set(max(0, limit))
	if reg != nil {
		reg.MustRegister(m.requests, m.duration, m.sessions, m.connections, circuit, budget)
	}
	return m
}

// answered counts a request; status is 0 when there was no answer.
func (m *metrics) answered(method string, status int, took time.Duration) {
	m.requests.WithLabelValues(codeLabel(status), methodLabel(method)).Inc()
	m.duration.Observe(took.Seconds())
}

func codeLabel(status int) string {
	switch {
	case status == 0:
		return "none"
	case http.StatusText(status) == "":
		return "other"
	}
	return strconv.Itoa(status)
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "other"
}

package tftp

import "github.com/prometheus/client_golang/prometheus"

// The results of requests, as metrics show them.
const (
	resultOK       = "ok"
	resultNotFound = "not found"
	resultDeclined = "declined" // the client asked for the size and went away, as UEFI does
	resultAborted  = "aborted"  // the client broke off
	resultTimeout  = "timeout"  // the client fell silent
	resultBusy     = "busy"     // too many transfers in all
	resultLimited  = "limited"  // too many transfers to its address
	resultRefused  = "refused"  // malformed, or to write
	resultFailed   = "failed"   // anything else
)

var results = []string{
	resultOK, resultNotFound, resultDeclined, resultAborted, resultTimeout, resultBusy, resultLimited, resultRefused, resultFailed,
}

// metrics are what the TFTP server counts.
type metrics struct {
	requests  map[string]prometheus.Counter // by result
	bytes     prometheus.Counter
	durations prometheus.Histogram
	active    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_tftp_requests_total",
		Help: "TFTP requests, by result; declined is a client that only asked for a file's size, busy one that has to retry, limited one whose address has too many transfers.",
	}, []string{"result"})
	m := metrics{
		requests: make(map[string]prometheus.Counter),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_tftp_bytes_total",
			Help: "Bytes of boot loaders sent by TFTP.",
		}),
		durations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ingot_tftp_duration_seconds",
			Help:    "Duration of complete TFTP transfers.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100},
		}),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_tftp_transfers",
			Help: "TFTP transfers in progress.",
		}),
	}
	for _, result := range results {
		m.requests[result] = requests.WithLabelValues(result)
	}
	if reg != nil {
		reg.MustRegister(requests, m.bytes, m.durations, m.active)
	}
	return m
}

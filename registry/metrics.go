package registry

import (
	"github.com/prometheus/client_golang/prometheus"

	"ingot/registry/store"
)

type metrics struct {
	writes  *prometheus.CounterVec
	commits prometheus.Histogram
	errors  prometheus.Counter
	lost    prometheus.Counter
	corrupt prometheus.Counter
	leading prometheus.Gauge
	up      prometheus.Gauge
	stored  prometheus.Gauge // when a commit was last made
	unnoted prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_store_writes_total", Help: "Values written to or deleted from the store.",
		}, []string{"bucket"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_store_commit_seconds", Help: "Duration of commits to the store.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_store_errors_total", Help: "Failed calls to the store.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_store_lost_total", Help: "How often the store was found emptied, replaced, rolled back or incomplete, and was rewritten from memory.",
		}),
		corrupt: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_store_corrupt_values_total", Help: "Values in the store that could not be read and were ignored.",
		}),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_store_leading", Help: "1 while this process leads.",
		}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_store_up", Help: "1 while the store responds, 0 while Ingot works from memory or another process leads.",
		}),
		stored: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_store_last_success_timestamp_seconds", Help: "When something was last committed to the store, in Unix time; 0 = not yet by this process.",
		}),
		unnoted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_ticket_uses_unnoted_total", Help: "Requests with boot tickets that were not recorded among the uses of their ticket, because there was no room.",
		}),
	}
	m.up.Set(1)
	for _, b := range append([]store.Bucket{store.BucketLease}, store.Buckets...) {
		m.writes.WithLabelValues(string(b))
	}
	if reg != nil {
		reg.MustRegister(m.writes, m.commits, m.errors, m.lost, m.corrupt, m.leading, m.up, m.stored, m.unnoted)
	}
	return m
}

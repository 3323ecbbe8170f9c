package gitsource

import "github.com/prometheus/client_golang/prometheus"

// fetchResults and pushResults are the values of the label "result".
const (
	resultUnchanged = "unchanged"
	resultChanged   = "changed"
)

type sourceMetrics struct {
	fetches  *prometheus.CounterVec
	duration prometheus.Histogram
	revision prometheus.Gauge
	files    prometheus.Gauge
	problems *prometheus.GaugeVec
	decoded  prometheus.Counter
	// unverified is 1 while the newest revision is not used for want of a signature.
	unverified prometheus.Gauge
}

func newSourceMetrics(reg prometheus.Registerer) *sourceMetrics {
	m := &sourceMetrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_git_fetch_total", Help: "Looks at the watched branch, by what came of them.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_git_fetch_duration_seconds", Help: "Duration of a look at the watched branch.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10),
		}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_revision_timestamp_seconds", Help: "When the revision in force was taken over, in Unix time.",
		}),
		files: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_manifests", Help: "Manifests in the newest revision that was read.",
		}),
		problems: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ingot_git_problems", Help: "Problems of the newest revision that was read, by severity.",
		}, []string{"severity"}),
		decoded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_git_manifests_decoded_total", Help: "Manifests that were decoded; one that did not change is not decoded again.",
		}),
	}
	m.unverified = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ingot_git_revision_unverified", Help: "1 while the newest revision that was seen is not used, or would not be, for want of a signature; else 0.",
	})
	if reg != nil {
		reg.MustRegister(m.fetches, m.duration, m.revision, m.files, m.problems, m.decoded, m.unverified)
	}
	return m
}

type statusMetrics struct {
	pushes   *prometheus.CounterVec
	duration prometheus.Histogram
	files    prometheus.Counter
}

func newStatusMetrics(reg prometheus.Registerer) *statusMetrics {
	m := &statusMetrics{
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_git_push_total", Help: "Attempts to write the status branch, by what came of them.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_git_push_duration_seconds", Help: "Duration of writing the status branch, retries included.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10),
		}),
		files: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_git_status_files_total", Help: "Files of the status branch that were written anew.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.pushes, m.duration, m.files)
	}
	return m
}

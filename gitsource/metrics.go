package gitsource

import (
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// The values of the label "result" of fetches and pushes, beside the kinds of failure.
const (
	resultUnchanged = "unchanged"
	resultChanged   = "changed"
)

type sourceMetrics struct {
	fetches  *prometheus.CounterVec
	duration prometheus.Histogram
	fetched  prometheus.Gauge // when the branch was last looked at
	revision prometheus.Gauge
	inForce  prometheus.Gauge // when the commit in force was made
	head     prometheus.Gauge // when the newest commit that was judged was made
	files    prometheus.Gauge
	problems *prometheus.GaugeVec
	decoded  prometheus.Counter
	// unverified is 1 while the newest revision is not used for want of a signature.
	unverified prometheus.Gauge
}

func (m *sourceMetrics) noteTrust(v Verify, t trust) {
	if !v.on() {
		return
	}
	unverified := 0.0
	if t.problem != "" {
		unverified = 1
	}
	m.unverified.Set(unverified)
}

// newSourceMetrics registers the metrics with reg, if there is one. lag tells for how many
// seconds the newest revision is not in force.
func newSourceMetrics(reg prometheus.Registerer, lag func() float64) *sourceMetrics {
	m := &sourceMetrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_git_fetch_total", Help: "Polls of the watched branch, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_git_fetch_duration_seconds", Help: "Duration of a poll of the watched branch.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10),
		}),
		fetched: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_fetch_last_success_timestamp_seconds", Help: "When the watched branch was last read, in Unix time; 0 = not yet.",
		}),
		inForce: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_revision_commit_timestamp_seconds", Help: "Commit time of the commit in force, in Unix time.",
		}),
		head: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_head_commit_timestamp_seconds", Help: "Commit time of the newest commit read from the watched branch, in Unix time.",
		}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_revision_timestamp_seconds", Help: "When the revision in force was applied, in Unix time.",
		}),
		files: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_manifests", Help: "Manifests in the newest revision read.",
		}),
		problems: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ingot_git_problems", Help: "Problems in the newest revision read, by severity.",
		}, []string{"severity"}),
		decoded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_git_manifests_decoded_total", Help: "Manifests decoded; an unchanged manifest is not decoded again.",
		}),
	}
	m.unverified = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ingot_git_revision_unverified", Help: "1 while the newest revision seen is not used, or would not be, because it lacks a valid signature; else 0.",
	})
	behind := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_git_lag_seconds", Help: "For how long the newest revision seen has not been in force; 0 when it is.",
	}, lag)
	startResults(m.fetches)
	for _, s := range []model.Severity{model.SeverityError, model.SeverityWarning} {
		m.problems.WithLabelValues(string(s))
	}
	if reg != nil {
		reg.MustRegister(m.fetches, m.duration, m.fetched, m.revision, m.inForce, m.head, behind, m.files, m.problems, m.decoded, m.unverified)
	}
	return m
}

// startResults has the counters of all results begin at zero.
func startResults(c *prometheus.CounterVec) {
	c.WithLabelValues(resultUnchanged)
	c.WithLabelValues(resultChanged)
	for _, kind := range failureKinds {
		c.WithLabelValues(string(kind))
	}
}

type statusMetrics struct {
	pushes   *prometheus.CounterVec
	duration prometheus.Histogram
	files    prometheus.Counter
}

func newStatusMetrics(reg prometheus.Registerer) *statusMetrics {
	m := &statusMetrics{
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_git_push_total", Help: "Attempts to write the status branch, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_git_push_duration_seconds", Help: "Duration of writing the status branch, retries included.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10),
		}),
		files: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_git_status_files_total", Help: "Files of the status branch that were written.",
		}),
	}
	startResults(m.pushes)
	if reg != nil {
		reg.MustRegister(m.pushes, m.duration, m.files)
	}
	return m
}

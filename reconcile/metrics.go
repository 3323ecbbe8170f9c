package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/reconcile/plan"
)

// Metrics are the loop's metrics, and those of the fleet that it plans for. The
// zero of *Metrics counts nothing.
type Metrics struct {
	plans     prometheus.Histogram
	parts     *prometheus.HistogramVec
	results   *prometheus.CounterVec
	actions   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	moves     prometheus.Gauge
	unmatched prometheus.Gauge
	loopLag   prometheus.Histogram
	lag       prometheus.Histogram
	publish   *prometheus.CounterVec
}

// NewMetrics registers the loop's metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_plan_duration_seconds", Help: "Time that one plan of the whole fleet took.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		parts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_plan_part_duration_seconds", Help: "Time that the parts of one plan took: to plan, to save what is decided, to begin the moves.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}, []string{"part"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metal_server_reconciliation_total", Help: "Plans and moves, by result.",
		}, []string{"result"}),
		actions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_action_duration_seconds", Help: "Time that actions on servers took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"action"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_action_failures_total", Help: "Actions on servers that failed.",
		}, []string{"action"}),
		moves: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_moves_under_way", Help: "Moves of servers and readings of BMCs that are under way.",
		}),
		unmatched: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_unmatched", Help: "Warnings of manifests that name a server, or a label of servers, which is not known.",
		}),
		loopLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_loop_lag_seconds", Help: "Time by which a plan that was due came late.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_status_lag_seconds", Help: "Time from the first change to the commit that shows it on the status branch.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 8),
		}),
		publish: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_status_commits_total", Help: "Attempts to publish the status branch, by result.",
		}, []string{"result"}),
	}
	for _, r := range []string{"success", "error_fetch", "error_reconcile"} {
		m.results.WithLabelValues(r)
	}
	reg.MustRegister(m.plans, m.parts, m.results, m.actions, m.failures, m.moves, m.unmatched, m.loopLag, m.lag, m.publish)
	return m
}

func (m *Metrics) planned(took time.Duration, err error) {
	if m == nil {
		return
	}
	m.plans.Observe(took.Seconds())
	if err != nil {
		m.results.WithLabelValues("error_fetch").Inc()
	}
}

// part counts how long a part of a plan took, and returns when the next begins.
func (m *Metrics) part(name string, begun, now time.Time) time.Time {
	if m != nil {
		m.parts.WithLabelValues(name).Observe(now.Sub(begun).Seconds())
	}
	return now
}

func (m *Metrics) late(by time.Duration) {
	if m != nil {
		m.loopLag.Observe(by.Seconds())
	}
}

func (m *Metrics) underWay(n int) {
	if m != nil {
		m.moves.Set(float64(n))
	}
}

func (m *Metrics) warned(unmatched int) {
	if m != nil {
		m.unmatched.Set(float64(unmatched))
	}
}

func (m *Metrics) acted(a plan.Action, took time.Duration, err error) {
	if m == nil {
		return
	}
	name := actionName(a)
	m.actions.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues(name).Inc()
		return
	}
	m.results.WithLabelValues("success").Inc()
}

func (m *Metrics) failed() {
	if m != nil {
		m.results.WithLabelValues("error_reconcile").Inc()
	}
}

func (m *Metrics) published(result string, lag time.Duration) {
	if m == nil {
		return
	}
	m.publish.WithLabelValues(result).Inc()
	if result == "success" {
		m.lag.Observe(lag.Seconds())
	}
}

// actionName is the action's kind as a metric's label.
func actionName(a plan.Action) string {
	switch a := a.(type) {
	case plan.Inspect:
		if a.Inventory {
			return "inventory"
		}
		return "power_state"
	case plan.Arm:
		return "arm"
	case plan.BootOnce:
		return "boot_once"
	case plan.DiskOnce:
		return "disk_once"
	case plan.ClearBoot:
		return "clear_boot"
	case plan.SetIndicator:
		return "set_indicator"
	case plan.SetBootOrder:
		return "set_boot_order"
	case plan.SetPower:
		return "power_request"
	}
	return "other"
}

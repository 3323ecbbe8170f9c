package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Metrics are the loop's metrics, and those of the fleet that it plans for. The
// zero of *Metrics counts nothing.
type Metrics struct {
	plans     prometheus.Histogram
	parts     *prometheus.HistogramVec
	results   *prometheus.CounterVec
	actions   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	checks    *prometheus.CounterVec
	moves     prometheus.Gauge
	unmatched prometheus.Gauge
	loopLag   prometheus.Histogram
	lag       prometheus.Histogram
	publish   *prometheus.CounterVec
	// plannedAt and publishedAt are when either was last done without an error.
	plannedAt, publishedAt prometheus.Gauge
	timings                timings
}

// NewMetrics registers the loop's metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_plan_duration_seconds", Help: "Duration of one plan of the whole fleet.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		parts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_plan_part_duration_seconds", Help: "Duration of the parts of one plan: to plan, to save the decisions, to start the moves.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}, []string{"part"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metal_server_reconciliation_total", Help: "Plans and moves, by result.",
		}, []string{"result"}),
		actions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ingot_action_duration_seconds", Help: "Duration of actions on servers.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"action"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_action_failures_total", Help: "Actions on servers that failed, by action and reason.",
		}, []string{"action", "reason"}),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_checks_total", Help: "Checks of the image and Secret of claims before they get a server, by result.",
		}, []string{"result"}),
		moves: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_moves_under_way", Help: "Moves of servers and readings of BMCs in progress.",
		}),
		unmatched: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_git_unmatched", Help: "Warnings about manifests that name an unknown server or server label.",
		}),
		loopLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_loop_lag_seconds", Help: "Delay of plans beyond the time at which they were due.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_status_lag_seconds", Help: "Time from the first change to the commit that shows it on the status branch.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 8),
		}),
		publish: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_status_commits_total", Help: "Attempts to publish the status branch, by result.",
		}, []string{"result"}),
		plannedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_plan_last_success_timestamp_seconds", Help: "When the fleet was last planned without an error, in Unix time; 0 = not yet.",
		}),
		publishedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_status_last_success_timestamp_seconds", Help: "When the status branch was last up to date, in Unix time; 0 = not yet.",
		}),
		timings: newTimings(reg),
	}
	m.start()
	reg.MustRegister(m.plans, m.parts, m.results, m.actions, m.failures, m.checks, m.moves, m.unmatched, m.loopLag, m.lag, m.publish, m.plannedAt, m.publishedAt)
	return m
}

// start has the counters begin at zero, so that their first event is an increase.
func (m *Metrics) start() {
	for _, r := range []string{"success", "error_fetch", "error_reconcile"} {
		m.results.WithLabelValues(r)
	}
	for _, r := range []string{publishSuccess, publishError} {
		m.publish.WithLabelValues(r)
		m.checks.WithLabelValues(r)
	}
	for _, a := range actionNames {
		m.failures.WithLabelValues(a, otherLabel)
	}
}

// The values of the label result of commits to the status branch, and of checks.
const (
	publishSuccess = "success"
	publishError   = "error"
)

// otherLabel stands for all values of a label that are not known beforehand.
const otherLabel = "other"

// reasonLabel is a reason as a metric's label. Reasons in reports may be any.
func reasonLabel(r model.Reason) string {
	if reasons[r] {
		return r
	}
	return otherLabel
}

var reasons = func() map[model.Reason]bool {
	known := make(map[model.Reason]bool, len(model.Reasons))
	for _, r := range model.Reasons {
		known[r] = true
	}
	return known
}()

// saw measures what became of the servers since the plan before.
func (m *Metrics) saw(o *model.Observed) {
	if m != nil {
		m.timings.saw(o)
	}
}

func (m *Metrics) planned(took time.Duration, err error) {
	if m == nil {
		return
	}
	m.plans.Observe(took.Seconds())
	if err != nil {
		m.results.WithLabelValues("error_fetch").Inc()
		return
	}
	m.plannedAt.SetToCurrentTime() // alerts compare it with a clock that is right
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

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

func (m *Metrics) acted(a proposal.Action, took time.Duration, failed *proposal.Failure) {
	if m == nil {
		return
	}
	name := actionName(a)
	m.actions.WithLabelValues(name).Observe(took.Seconds())
	if failed != nil && failed.Reason == model.ReasonImagePreparing {
		return // it goes on
	}
	if failed != nil {
		m.failures.WithLabelValues(name, reasonLabel(failed.Reason)).Inc()
		return
	}
	m.results.WithLabelValues("success").Inc()
}

func (m *Metrics) failed() {
	if m != nil {
		m.results.WithLabelValues("error_reconcile").Inc()
	}
}

// checked counts a check of a boot.
func (m *Metrics) checked(failed *proposal.Failure) {
	switch {
	case m == nil:
	case failed == nil:
		m.checks.WithLabelValues(publishSuccess).Inc()
	default:
		m.checks.WithLabelValues(publishError).Inc()
	}
}

// unpublished counts an attempt to publish that came to nothing.
func (m *Metrics) unpublished() {
	if m != nil {
		m.publish.WithLabelValues(publishError).Inc()
	}
}

// published notes that the status branch is as it should be, and counts the commit that it
// took, if it took one that long.
func (m *Metrics) published(committed bool, lag time.Duration) {
	if m == nil {
		return
	}
	m.publishedAt.SetToCurrentTime()
	if committed {
		m.publish.WithLabelValues(publishSuccess).Inc()
		m.lag.Observe(lag.Seconds())
	}
}

// actionNames are the values of the label action.
var actionNames = []string{
	"inventory", "power_state", "arm", "boot_once", "disk_once", "clear_boot", "set_indicator", "set_boot_order", "power_request", otherLabel,
}

// actionName is the action's kind as a metric's label.
func actionName(a proposal.Action) string {
	switch a := a.(type) {
	case proposal.Inspect:
		if a.Inventory {
			return "inventory"
		}
		return "power_state"
	case proposal.Arm:
		return "arm"
	case proposal.BootOnce:
		return "boot_once"
	case proposal.DiskOnce:
		return "disk_once"
	case proposal.ClearBoot:
		return "clear_boot"
	case proposal.SetIndicator:
		return "set_indicator"
	case proposal.SetBootOrder:
		return "set_boot_order"
	case proposal.SetPower:
		return "power_request"
	}
	return otherLabel
}

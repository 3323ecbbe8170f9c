package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// Metrics are the loop's metrics, and those of the fleet that it plans for. The
// zero of *Metrics counts nothing.
type Metrics struct {
	plans    prometheus.Histogram
	results  *prometheus.CounterVec
	actions  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	moves    prometheus.Gauge
	loopLag  prometheus.Histogram
	lag      prometheus.Histogram
	publish  *prometheus.CounterVec
}

// NewMetrics registers the loop's metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ingot_plan_duration_seconds", Help: "Time that one plan of the whole fleet took.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
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
	reg.MustRegister(m.plans, m.results, m.actions, m.failures, m.moves, m.loopLag, m.lag, m.publish)
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

func (m *Metrics) acted(a Action, took time.Duration, err error) {
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
func actionName(a Action) string {
	switch a := a.(type) {
	case Inspect:
		if a.Inventory {
			return "inventory"
		}
		return "power_state"
	case Arm:
		return "arm"
	case BootOnce:
		return "boot_once"
	case DiskOnce:
		return "disk_once"
	case ClearBoot:
		return "clear_boot"
	case SetPower:
		return "power_request"
	}
	return "other"
}

// FleetCollector shows the state of every server: metal-operator's metrics, with
// a series for each state that there is.
type FleetCollector struct {
	input                    func() *Input
	state, power, condition  *prometheus.Desc
	servers, claims, problem *prometheus.Desc
	unconfirmed              *prometheus.Desc
}

// NewFleetCollector returns a collector of what input returns at each scrape.
func NewFleetCollector(input func() *Input) *FleetCollector {
	desc := prometheus.NewDesc
	return &FleetCollector{
		input:       input,
		state:       desc("metal_server_state", "1 for the state that the server is in, 0 for the others.", []string{"server", "state"}, nil),
		power:       desc("metal_server_power_state", "1 for the server's power state, 0 for the others.", []string{"server", "power_state"}, nil),
		condition:   desc("metal_server_condition_status", "Always 1: a condition of the server and its status.", []string{"server", "condition_type", "status"}, nil),
		servers:     desc("ingot_servers", "Servers by state.", []string{"state"}, nil),
		claims:      desc("ingot_claims", "Claims by phase.", []string{"phase"}, nil),
		problem:     desc("ingot_guard_held", "Steps that the guard holds back.", nil, nil),
		unconfirmed: desc("ingot_claims_unconfirmed", "Claims whose server was served what installs it and did not say that it booted.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *FleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.state, c.power, c.condition, c.servers, c.claims, c.problem, c.unconfirmed} {
		ch <- d
	}
}

var powerStates = []model.Power{
	model.PowerOn, model.PowerOff, model.PowerPaused, model.PowerPoweringOn, model.PowerPoweringOff,
}

// Collect implements prometheus.Collector.
func (c *FleetCollector) Collect(ch chan<- prometheus.Metric) {
	in := c.input()
	if in == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	f := newView(in, Plan(in))
	counts, unconfirmed := make(map[model.ServerState]int), 0
	for i := range f.Servers {
		s := f.server(&f.Servers[i])
		counts[s.Record.State]++
		unconfirmed += int(oneIf(s.Unconfirmed != nil))
		for _, st := range model.ServerStates {
			gauge(c.state, oneIf(st == s.Record.State), string(s.Name), string(st))
		}
		for _, p := range powerStates {
			gauge(c.power, oneIf(p == s.facts().Power), string(s.Name), string(p))
		}
		for _, cond := range f.serverConditions(s) {
			gauge(c.condition, 1, string(s.Name), cond.Type, string(cond.Status))
		}
	}
	for _, st := range model.ServerStates {
		gauge(c.servers, float64(counts[st]), string(st))
	}
	bound := 0
	for i := range f.Claims {
		bound += int(oneIf(f.Claims[i].Server != ""))
	}
	gauge(c.claims, float64(bound), "Bound")
	gauge(c.claims, float64(len(in.Desired.Claims)-bound), "Unbound")
	held := 0
	for _, g := range in.Observed.Fleet.Holds {
		held += len(g.Steps)
	}
	gauge(c.problem, float64(held))
	gauge(c.unconfirmed, float64(unconfirmed))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

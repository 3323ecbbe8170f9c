package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// FleetCollector shows the state of every server: metal-operator's metrics, with
// a series for each state that there is.
type FleetCollector struct {
	report                   func() *Reported
	state, power, condition  *prometheus.Desc
	servers, claims, problem *prometheus.Desc
	unconfirmed              *prometheus.Desc
}

// NewFleetCollector returns a collector of what report returns at each scrape.
func NewFleetCollector(report func() *Reported) *FleetCollector {
	desc := prometheus.NewDesc
	return &FleetCollector{
		report:      report,
		state:       desc("metal_server_state", "1 for the state that the server is in, 0 for the others.", []string{"server", "state"}, nil),
		power:       desc("metal_server_power_state", "1 for the server's power state, 0 for the others.", []string{"server", "power_state"}, nil),
		condition:   desc("metal_server_condition_status", "Always 1: a condition of the server and its status.", []string{"server", "condition_type", "status"}, nil),
		servers:     desc("ingot_servers", "Servers by state.", []string{"state"}, nil),
		claims:      desc("ingot_claims", "Claims by phase.", []string{"phase"}, nil),
		problem:     desc("ingot_guard_held", "Steps that the guard holds back.", nil, nil),
		unconfirmed: desc("ingot_claims_unconfirmed", "Claims whose server was served what installs it and did not report that it booted.", nil, nil),
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
	r := c.report()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counts, unconfirmed := make(map[model.ServerState]int), 0
	for i := range r.Result.Servers {
		s, status := &r.Result.Servers[i], r.ServerStatus(r.Result.Servers[i].Name)
		counts[s.Record.State]++
		unconfirmed += int(oneIf(s.Unconfirmed != nil))
		for _, st := range model.ServerStates {
			gauge(c.state, oneIf(st == s.Record.State), string(s.Name), string(st))
		}
		for _, p := range powerStates {
			gauge(c.power, oneIf(p == status.PowerState), string(s.Name), string(p))
		}
		for _, cond := range status.Conditions {
			gauge(c.condition, 1, string(s.Name), cond.Type, string(cond.Status))
		}
	}
	for _, st := range model.ServerStates {
		gauge(c.servers, float64(counts[st]), string(st))
	}
	bound := 0
	for i := range r.Result.Claims {
		bound += int(oneIf(r.Result.Claims[i].Server != ""))
	}
	gauge(c.claims, float64(bound), "Bound")
	gauge(c.claims, float64(len(r.Result.Claims)-bound), "Unbound")
	held := 0
	for _, g := range r.Input.Observed.Fleet.Holds {
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

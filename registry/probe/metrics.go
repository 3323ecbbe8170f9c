package probe

import (
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

type metrics struct {
	requests *prometheus.CounterVec
	unknown  prometheus.Counter
	refusals *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_registry_requests_total", Help: "Requests to the endpoint that probes report to.",
		}, []string{"path", "code"}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_registry_unknown_reports_total", Help: "Reports for system UUIDs that no server has.",
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_report_refusals_total", Help: "Reports that were refused because of their token or the address that they came from.",
		}, []string{"what", "reason"}),
	}
	for _, what := range []model.TicketThing{model.ThingReport, model.ThingBootState, model.ThingWipe} {
		for _, reason := range model.TicketRefusals {
			m.refusals.WithLabelValues(string(what), string(reason))
		}
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.unknown, m.refusals)
	}
	return m
}

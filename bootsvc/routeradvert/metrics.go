package routeradvert

import "github.com/prometheus/client_golang/prometheus"

// metrics are what a Sender counts and shows, by network.
type metrics struct {
	sent, contradicting *prometheus.CounterVec
	failing             *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_router_advertisements_sent_total",
			Help: "IPv6 router advertisements sent, by network.",
		}, []string{"network"}),
		contradicting: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_router_advertisements_contradicting_total",
			Help: "IPv6 router advertisements of other routers that contradict Ingot's, by network.",
		}, []string{"network"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ingot_router_advertisements_failing",
			Help: "1 while IPv6 router advertisements cannot be sent, by network; /readyz says why.",
		}, []string{"network"}),
	}
	if reg != nil {
		reg.MustRegister(m.sent, m.contradicting, m.failing)
	}
	return m
}

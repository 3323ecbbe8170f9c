package dhcp

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the server counts. Their labels come from the configuration
// and from fixed lists, never from packets.
type metrics struct {
	packets *prometheus.CounterVec // by network, family, type and outcome
	dropped *prometheus.CounterVec // by network, family and reason
	boots   *prometheus.CounterVec // by network, family, client and result
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		packets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_dhcp_packets_total",
			Help: "DHCP packets processed, by network, family (4, 6), message type and outcome.",
		}, []string{"network", "family", "type", "outcome"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_dhcp_dropped_total",
			Help: "DHCP packets dropped without further processing, by network, family (4, 6) and reason.",
		}, []string{"network", "family", "reason"}),
		boots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_dhcp_boot_answers_total",
			Help: "Clients that asked for a boot file, by network, family (4, 6), kind of client and result: told, or the reason for giving none.",
		}, []string{"network", "family", "client", "result"}),
	}
	if reg != nil {
		reg.MustRegister(m.packets, m.dropped, m.boots)
	}
	return m
}

type networkMetrics struct {
	metrics
	network string
}

// start has the counters of packets over the limit begin at zero.
func (m networkMetrics) start() {
	for _, f := range []string{"4", "6"} {
		m.dropped.WithLabelValues(m.network, f, overClient)
	}
}

// packet counts a packet that was decided upon. kind and outcome are from fixed
// lists.
func (m networkMetrics) packet(family, kind, outcome string) {
	m.packets.WithLabelValues(m.network, family, kind, outcome).Inc()
}

// drop counts a packet that was not looked into further.
func (m networkMetrics) drop(family, reason string) {
	m.dropped.WithLabelValues(m.network, family, reason).Inc()
}

func (m networkMetrics) boot(family, client, result string) {
	m.boots.WithLabelValues(m.network, family, client, result).Inc()
}

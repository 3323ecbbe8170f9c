package dhcp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the server counts. Their labels come from the configuration
// and from fixed lists, never from packets.
type metrics struct {
	packets *prometheus.CounterVec // by network, family, type and outcome
	dropped *prometheus.CounterVec // by network, family and reason
	boots   *prometheus.CounterVec // by network, family, client and result
	rates   *prometheus.GaugeVec   // by network and what is bounded
}

func newMetrics(reg prometheus.Registerer, l limits, clock func() time.Time) metrics {
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
		rates: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ingot_dhcp_rate_limit",
			Help: "DHCP packets per second that are processed, by network and source: a client, or a port of a relay.",
		}, []string{"network", "per"}),
	}
	if reg != nil {
		clients, ports := limitedGauges(l, clock)
		reg.MustRegister(m.packets, m.dropped, m.boots, m.rates, clients, ports)
	}
	return m
}

// limitedGauges count those who are over a limit.
func limitedGauges(l limits, clock func() time.Time) (clients, ports prometheus.Collector) {
	clients = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_dhcp_limited_clients",
		Help: "MAC addresses whose DHCP packets are currently dropped because there are too many.",
	}, func() float64 { return float64(l.clients.limited(clock())) })
	ports = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_dhcp_limited_ports",
		Help: "Ports of relays whose DHCP packets are currently dropped because there are too many.",
	}, func() float64 { return float64(l.ports.limited(clock())) })
	return clients, ports
}

// networkMetrics are the metrics of one network.
type networkMetrics struct {
	metrics
	network string
}

// start shows the limits, and has the counters of what they hold back begin at zero.
func (m networkMetrics) start(r RateLimit) {
	m.rates.WithLabelValues(m.network, "client").Set(float64(r.Client))
	m.rates.WithLabelValues(m.network, "port").Set(float64(r.Port))
	for _, f := range []string{"4", "6"} {
		m.dropped.WithLabelValues(m.network, f, overClient)
		m.dropped.WithLabelValues(m.network, f, overPort)
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

// boot counts a client that asked for a boot file.
func (m networkMetrics) boot(family, client, result string) {
	m.boots.WithLabelValues(m.network, family, client, result).Inc()
}

package lease

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newRefused returns the counter of requests that found no address left. Its labels
// come from the configuration, never from packets.
func newRefused(reg prometheus.Registerer) *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_dhcp_pool_refused_total",
		Help: "Requests for an address that was refused because none was left, by network and subnet.",
	}, []string{"network", "subnet"})
	if reg != nil {
		reg.MustRegister(refused)
	}
	return refused
}

// commitMetrics are what the committer counts.
type commitMetrics struct {
	duration prometheus.Histogram
	size     prometheus.Histogram
	failures prometheus.Counter
	away     prometheus.Gauge
}

func newCommitMetrics(reg prometheus.Registerer) commitMetrics {
	m := commitMetrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ingot_dhcp_commit_duration_seconds",
			Help:    "Time to store a group of leases durably.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5},
		}),
		size: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ingot_dhcp_commit_leases",
			Help:    "Leases that were stored in one group.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_dhcp_commit_failures_total",
			Help: "Groups of leases that the store did not accept.",
		}),
		away: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingot_dhcp_store_away",
			Help: "1 while leases cannot be stored and only renewals are answered.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.duration, m.size, m.failures, m.away)
	}
	return m
}

func (m commitMetrics) observe(leases int, took time.Duration, err error) {
	m.duration.Observe(took.Seconds())
	if err != nil {
		m.failures.Inc()
		return
	}
	m.size.Observe(float64(leases))
}

// fill describes how full the pools are, and the leases, as gauges that are
// computed when they are asked for.
type fill struct {
	table *Table
	clock func() time.Time
}

var (
	poolSize = prometheus.NewDesc("ingot_dhcp_pool_size",
		"Addresses in the range of a subnet.", []string{"network", "subnet"}, nil)
	poolUsed = prometheus.NewDesc("ingot_dhcp_pool_used",
		"Addresses of the range that are leased, set aside or reserved.", []string{"network", "subnet"}, nil)
	leases = prometheus.NewDesc("ingot_dhcp_leases",
		"Leases that have not expired, by network and kind (IPv4, IPv6, prefix).", []string{"network", "kind"}, nil)
)

// Describe implements prometheus.Collector.
func (f fill) Describe(ch chan<- *prometheus.Desc) { ch <- poolSize; ch <- poolUsed; ch <- leases }

// Collect implements prometheus.Collector.
func (f fill) Collect(ch chan<- prometheus.Metric) {
	now := f.clock()
	for _, p := range f.table.Pools(now) {
		ch <- prometheus.MustNewConstMetric(poolSize, prometheus.GaugeValue, float64(p.Size), p.Network, p.Subnet)
		ch <- prometheus.MustNewConstMetric(poolUsed, prometheus.GaugeValue, float64(p.Used), p.Network, p.Subnet)
	}
	for _, n := range f.table.networks {
		f.table.mu.Lock()
		counts := n.count(now)
		f.table.mu.Unlock()
		for k, count := range counts {
			ch <- prometheus.MustNewConstMetric(leases, prometheus.GaugeValue, float64(count), n.Name, kind(k).String())
		}
	}
}

package notify

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	attempts *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	waiting  *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_notify_total", Help: "Attempts to send to a webhook, by outcome.",
		}, []string{"target", "outcome"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_notify_dropped_total", Help: "Notices that were given up because the webhook did not accept them.",
		}, []string{"target"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ingot_notify_waiting", Help: "Notices that wait to be sent to a webhook.",
		}, []string{"target"}),
	}
	if reg != nil {
		reg.MustRegister(m.attempts, m.dropped, m.waiting)
	}
	return m
}

// counts are the metrics of one webhook.
type counts struct {
	did     func(outcome)
	dropped prometheus.Counter
	waiting prometheus.Gauge
}

// of shows all series of a webhook from the start, so that a rate can be taken of each.
func (m metrics) of(target string) counts {
	for _, o := range allOutcomes {
		m.attempts.WithLabelValues(target, string(o))
	}
	return counts{
		did:     func(o outcome) { m.attempts.WithLabelValues(target, string(o)).Inc() },
		dropped: m.dropped.WithLabelValues(target), waiting: m.waiting.WithLabelValues(target),
	}
}

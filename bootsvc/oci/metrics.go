package oci

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what Images counts.
type metrics struct{ resolves *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_boot_image_resolves_total",
		Help: "Image references resolved, by result: ok, or the reason why not.",
	}, []string{"result"})}
	if reg != nil {
		reg.MustRegister(m.resolves)
	}
	return m
}

// resolved counts one resolution.
func (m metrics) resolved(err error) {
	result := "ok"
	var e *Error
	switch {
	case errors.As(err, &e):
		result = e.Reason
	case err != nil:
		result = "canceled"
	}
	m.resolves.WithLabelValues(result).Inc()
}

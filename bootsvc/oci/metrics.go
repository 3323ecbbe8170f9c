package oci

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

type metrics struct{ resolves *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_boot_image_resolves_total",
		Help: "Image references resolved, by result: ok, or the reason for the failure.",
	}, []string{"result"})}
	for _, result := range results {
		m.resolves.WithLabelValues(result)
	}
	if reg != nil {
		reg.MustRegister(m.resolves)
	}
	return m
}

// The values of the label result that are no reasons.
const (
	resultOK       = "ok"
	resultCanceled = "canceled"
)

var results = []string{
	resultOK, resultCanceled, model.ReasonInvalidReference, model.ReasonRegistryNotAllowed, model.ReasonUnauthorized, model.ReasonNotFound,
	model.ReasonRegistryUnreachable, model.ReasonNoArchitecture, model.ReasonValidationFailed,
}

func (m metrics) resolved(err error) {
	result := resultOK
	var e *Error
	switch {
	case errors.As(err, &e):
		result = e.Reason
	case err != nil:
		result = resultCanceled
	}
	m.resolves.WithLabelValues(result).Inc()
}

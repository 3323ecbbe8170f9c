package bootsvc

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the HTTP server counts.
type metrics struct {
	requests   *prometheus.CounterVec   // by route and code
	durations  *prometheus.HistogramVec // by route
	imageBytes prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_boot_requests_total",
			Help: "Requests that booting machines made, by route and status code; code aborted is an answer cut off before its end.",
		}, []string{"route", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ingot_boot_request_duration_seconds",
			Help:    "Time that requests of booting machines took, images to their last byte.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60, 300},
		}, []string{"route"}),
		imageBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ingot_boot_image_bytes_total",
			Help: "Bytes of image layers sent to booting machines.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.durations, m.imageBytes)
	}
	return m
}

// imageMetrics are what Images counts.
type imageMetrics struct{ resolves *prometheus.CounterVec }

func newImageMetrics(reg prometheus.Registerer) imageMetrics {
	m := imageMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_boot_image_resolves_total",
		Help: "Image references resolved, by result: ok, or the reason why not.",
	}, []string{"result"})}
	if reg != nil {
		reg.MustRegister(m.resolves)
	}
	return m
}

// resolved counts one resolution.
func (m imageMetrics) resolved(err error) {
	result := "ok"
	var e *ImageError
	switch {
	case errors.As(err, &e):
		result = e.Reason
	case err != nil:
		result = "canceled"
	}
	m.resolves.WithLabelValues(result).Inc()
}

package diskimage

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a Store counts. Bytes sent to machines are the HTTP server's to count.
type metrics struct {
	fetched, converted, resumes prometheus.Counter
	preparing, images           prometheus.Gauge
	durations                   *prometheus.HistogramVec // by result
}

// The values of the label result.
const (
	resultOK    = "ok"
	resultError = "error"
)

func newMetrics() metrics {
	m := metrics{
		fetched:   counter("ingot_disk_image_fetched_bytes_total", "Bytes of disk images fetched from registries and web servers."),
		converted: counter("ingot_disk_image_converted_bytes_total", "Bytes of disks, zeros included, that were converted to chunks."),
		resumes:   counter("ingot_disk_image_resumes_total", "Fetches of disk images that were interrupted and resumed."),
		preparing: gauge("ingot_disk_image_preparing", "Disk images that are being fetched, converted or checked."),
		images:    gauge("ingot_disk_image_images", "Disk images that are ready to be written."),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ingot_disk_image_preparation_duration_seconds",
			Help:    "Duration of preparing disk images, by result: ok or error.",
			Buckets: []float64{1, 5, 15, 60, 180, 600, 1800},
		}, []string{"result"}),
	}
	for _, result := range []string{resultOK, resultError} {
		m.durations.WithLabelValues(result)
	}
	return m
}

// register lets reg show the metrics; nil means nobody looks.
func (m metrics) register(reg prometheus.Registerer) {
	if reg != nil {
		reg.MustRegister(m.fetched, m.converted, m.resumes, m.preparing, m.images, m.durations)
	}
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (m metrics) observe(took time.Duration, err error) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.durations.WithLabelValues(result).Observe(took.Seconds())
}

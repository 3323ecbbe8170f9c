package imagecache

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a Cache counts. Bytes sent to machines are the HTTP server's to
// count.
type metrics struct {
	hits, misses, joins, bypasses prometheus.Counter
	resumes, busy                 prometheus.Counter
	fetched                       prometheus.Counter
	failures                      *prometheus.CounterVec // by where the wrong bytes came from
	fetches, wanted, done         prometheus.Gauge
	blobs                         prometheus.Gauge
	durations                     *prometheus.HistogramVec // by result
}

// The values of the label source of verify failures.
const (
	sourceRegistry = string(FromRegistry)
	sourceDisk     = string(FromDisk)
)

// The values of the label result of fetches.
const (
	resultOK    = "ok"
	resultError = "error"
)

func newMetrics() metrics {
	m := metrics{
		hits:     counter("ingot_image_cache_hits_total", "Requests for image blobs that were complete on disk."),
		misses:   counter("ingot_image_cache_misses_total", "Requests for image blobs that began a fetch from a registry."),
		joins:    counter("ingot_image_cache_joins_total", "Requests for image blobs that joined a fetch in progress."),
		bypasses: counter("ingot_image_cache_bypasses_total", "Requests for image blobs that were streamed past the cache, because there was no room on disk."),
		busy:     counter("ingot_image_cache_busy_total", "Requests for image blobs that got a retry response, because too many fetches were in progress."),
		resumes:  counter("ingot_image_cache_resumes_total", "Fetches of image blobs that were interrupted and resumed."),
		fetched:  counter("ingot_image_cache_fetched_bytes_total", "Bytes of image blobs fetched from registries."),
		fetches:  gauge("ingot_image_cache_fetches", "Fetches of image blobs from registries in progress."),
		wanted:   gauge("ingot_image_cache_fetches_wanted_bytes", "Size of the image blobs being fetched."),
		done:     gauge("ingot_image_cache_fetches_done_bytes", "Bytes received of the image blobs being fetched."),
		blobs:    gauge("ingot_image_cache_blobs", "Image blobs that are complete on disk."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ingot_image_cache_verify_failures_total",
			Help: "Image blobs that did not match their digest, by source: registry or disk.",
		}, []string{"source"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ingot_image_cache_fetch_duration_seconds",
			Help:    "Duration of fetches of image blobs into the cache, by result: ok or error.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 1800},
		}, []string{"result"}),
	}
	for _, source := range []string{sourceRegistry, sourceDisk} {
		m.failures.WithLabelValues(source)
	}
	for _, result := range []string{resultOK, resultError} {
		m.durations.WithLabelValues(result)
	}
	return m
}

// register lets reg show the metrics; nil means nobody looks.
func (m metrics) register(reg prometheus.Registerer) {
	if reg != nil {
		reg.MustRegister(m.hits, m.misses, m.joins, m.bypasses, m.busy, m.resumes, m.fetched,
			m.fetches, m.wanted, m.done, m.blobs, m.failures, m.durations)
	}
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// begin notes that a blob of a size is being fetched.
func (m metrics) begin(size int64) {
	m.fetches.Inc()
	m.wanted.Add(float64(size))
}

// arrived notes that n more bytes have come from a registry into the cache.
func (m metrics) arrived(n int) {
	m.fetched.Add(float64(n))
	m.done.Add(float64(n))
}

// end notes that the fetch of a blob is over, of which arrived bytes had come.
func (m metrics) end(size, arrived int64) {
	m.fetches.Dec()
	m.wanted.Sub(float64(size))
	m.done.Sub(float64(arrived))
}

func (m metrics) observe(took time.Duration, err error) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.durations.WithLabelValues(result).Observe(took.Seconds())
}

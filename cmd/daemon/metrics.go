package daemon

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"ingot/cmd/daemon/config"
)

// registerProcess registers what is so of this process and of the files that its
// configuration names.
func registerProcess(reg prometheus.Registerer, version string, opts *config.Options) {
	if version == "" {
		version = "unknown"
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ingot_build_info", Help: "Always 1: the version of Ingot that runs, and of Go that built it.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	files := opts.Files()
	dated := files
	if path, own := opts.SealKey(); own {
		dated = append(slices.Clip(files), config.File{Key: "redis.sealKeyFile", Path: path})
	}
	reg.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, &fileAges{files: dated, read: make(map[string]fileAge)}, unreadableFiles(files),
	)
}

// unreadableFiles shows which of the files that the configuration names cannot be read.
type unreadableFiles []config.File

var fileUnreadable = prometheus.NewDesc("ingot_file_unreadable",
	"1 while a configured file cannot be read, by configuration key; the log says what does not work without it.", []string{"key"}, nil)

// Describe implements prometheus.Collector.
func (u unreadableFiles) Describe(ch chan<- *prometheus.Desc) { ch <- fileUnreadable }

// Collect implements prometheus.Collector.
func (u unreadableFiles) Collect(ch chan<- prometheus.Metric) {
	for _, f := range u {
		unreadable := 0.0
		if f.Unreadable() != nil {
			unreadable = 1
		}
		ch <- prometheus.MustNewConstMetric(fileUnreadable, prometheus.GaugeValue, unreadable, f.Key)
	}
}

// fileAges shows how old the files are that the configuration names, and until when the
// certificates in them are valid. Of their content nothing else is shown.
type fileAges struct {
	files []config.File

	mu   sync.Mutex // guards what is below
	read map[string]fileAge
}

// fileAge is what was read of a file as it was then.
type fileAge struct {
	modified time.Time
	size     int64
	expiry   time.Time // of the certificate in it that expires first; zero = there is none
}

var (
	fileModified = prometheus.NewDesc("ingot_file_modified_timestamp_seconds",
		"When a configured file was last changed, in Unix time, by configuration key; absent if the file does not exist.", []string{"key"}, nil)
	certificateExpiry = prometheus.NewDesc("ingot_certificate_expiry_timestamp_seconds",
		"When the first of the certificates in a configured file expires, in Unix time, by configuration key.", []string{"key"}, nil)
)

// Describe implements prometheus.Collector.
func (f *fileAges) Describe(ch chan<- *prometheus.Desc) { ch <- fileModified; ch <- certificateExpiry }

// Collect implements prometheus.Collector.
func (f *fileAges) Collect(ch chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.files {
		age, ok := f.age(file.Path)
		if !ok {
			continue
		}
		ch <- prometheus.MustNewConstMetric(fileModified, prometheus.GaugeValue, float64(age.modified.Unix()), file.Key)
		if !age.expiry.IsZero() {
			ch <- prometheus.MustNewConstMetric(certificateExpiry, prometheus.GaugeValue, float64(age.expiry.Unix()), file.Key)
		}
	}
}

// age returns what is so of a regular file, and whether it is there. It is read only when it
// changed.
func (f *fileAges) age(path string) (fileAge, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fileAge{}, false
	}
	age, known := f.read[path]
	if !known || !age.modified.Equal(info.ModTime()) || age.size != info.Size() {
		age = fileAge{info.ModTime(), info.Size(), firstExpiry(path)}
		f.read[path] = age
	}
	return age, true
}

// maxCertificates bounds what is read of a file to look for certificates: the CAs of a
// whole system take a quarter of it.
const maxCertificates = 1 << 20

// firstExpiry returns when the first of the PEM certificates in a file expires, zero if it
// holds none.
func firstExpiry(path string) (first time.Time) {
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxCertificates))
	if err != nil {
		return time.Time{}
	}
	defer clear(content) // it may be a key
	rest := content
	for bytes.Contains(rest, []byte("-----BEGIN CERTIFICATE-----")) {
		block, after := pem.Decode(rest)
		if block == nil {
			return first
		}
		rest = after
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (first.IsZero() || cert.NotAfter.Before(first)) {
			first = cert.NotAfter
		}
	}
	return first
}

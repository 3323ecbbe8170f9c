package page_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"ingot/reconcile/report"
)

// BenchmarkPage renders pages of 5,000 servers. The yardstick encodes as many overviews as a list has rows.
func BenchmarkPage(b *testing.B) {
	f := large(5000)
	h := handler(f)
	for name, target := range map[string]string{"fleet": "/", "list": "/servers"} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				w := get(h, http.MethodGet, target)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
	b.Run("fleet after a change", func(b *testing.B) {
		for b.Loop() {
			docs := *f.docs
			f.docs = &docs
			get(h, http.MethodGet, "/")
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		for b.Loop() {
			for _, d := range f.docs.List(report.Servers)[:1000] {
				if _, err := json.Marshal(d.Overview()); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

package admin

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// BenchmarkViewers has 50 viewers follow a fleet of 10,000 servers, of which one changes at a time,
// and measures the time until the last of them got the event, and their memory. Changes are gathered for eventPause, which is the yardstick.
func BenchmarkViewers(b *testing.B) {
	const viewers = 50
	fleet := newLive(10_000)
	server := httptest.NewServer(NewHandler(Options{Fleet: fleet, Index: NewIndex(fleet), Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	fleet.Documents()
	before := heap()
	told := make(chan struct{}, viewers)
	for range viewers {
		resp, err := http.Get(server.URL + "/api/v1/events")
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		go func() {
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "event: ") {
					told <- struct{}{}
				}
			}
		}()
	}
	all := func() {
		for range viewers {
			<-told
		}
	}
	all() // hello
	states := []model.ServerState{model.StateError, model.StateReserved}
	var slowest time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		fleet.set(n%10_000, states[n/10_000%2])
		all()
		slowest = max(slowest, time.Since(began))
	}
	b.ReportMetric(float64(slowest.Milliseconds()), "slowest-ms")
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-more")
	server.CloseClientConnections()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

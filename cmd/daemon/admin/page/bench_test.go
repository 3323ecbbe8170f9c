package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// largeFleet has so many servers in racks of 20, half of them claimed, and some that wait.
func largeFleet(servers int) *aFleet {
	docs := map[string]*model.Document{model.ReportRevision: {Object: &report.Revision{Applied: "main@sha1:8c1f0a2b3c4d5e6f"}}}
	for i := range servers {
		name, rack := fmt.Sprintf("rack%03d-%02d", i/20, i%20), fmt.Sprintf("r%03d", i/20)
		labels := map[string]string{"location": fmt.Sprintf("room-%d", i/1000), "rack": rack, "shelf": fmt.Sprint(1 + 2*(i%20))}
		state, cond := model.StateAvailable, condition("Ready", metav1.ConditionTrue, "Available", "", now)
		switch {
		case i%100 == 7:
			state = model.StateError
			cond = condition("Ready", metav1.ConditionFalse, model.ReasonCleanupFailed, "disk S-"+name+" was not wiped (to act: rack operator)", now.Add(-time.Hour))
		case i%2 == 0:
			state = model.StateReserved
			claim := fmt.Sprintf("c%05d", i)
			docs["serverclaims/default/"+claim+".yaml"] = document(model.KindServerClaim, "default", claim, nil, model.ServerClaimSpec{Image: "flatcar:1"}, report.ClaimStatus{
				Phase: "Bound", Server: model.ServerName(name), Conditions: []metav1.Condition{
					condition("Bound", metav1.ConditionTrue, "Bound", "", now), condition("Ready", metav1.ConditionTrue, "Booted", "", now),
				},
			}, &model.ClaimRecord{Name: model.ClaimName("default/" + claim)})
		}
		docs["servers/"+name+".yaml"] = serverDocument(name, state, labels, cond)
	}
	return &aFleet{report: &model.Report{Documents: docs}, keeper: query.NewKeeper()}
}

// BenchmarkPage shows the pages of 10,000 servers. Beside each stand the bytes of an answer;
// the yardstick is the same rows as JSON, without a page around them.
func BenchmarkPage(b *testing.B) {
	f := largeFleet(10_000)
	h := handlerOf(f)
	for _, target := range []string{"/", "/servers", "/servers?sort=-since&state=Error&limit=500", "/servers/rack001-07", "/claims/default/c00000"} {
		b.Run(target, func(b *testing.B) {
			var bytes int64
			defer cpu(b)()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
				bytes = int64(w.Body.Len())
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
	b.Run("/ of another report each time", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			f.report = &model.Report{Documents: f.report.Documents}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		}
	})
	b.Run("yardstick, 100 rows as JSON", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			q, _ := query.Servers.Parse(nil)
			if _, err := json.Marshal(query.Servers.Select(f.Rows().Servers, q)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkViewers has 50 viewers fetch the page of 10,000 servers at once, as they do after
// an event, and tells how long the last of them waits and how much more is in use meanwhile.
func BenchmarkViewers(b *testing.B) {
	h := handlerOf(largeFleet(10_000))
	server := httptest.NewServer(h)
	defer server.Close()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer cpu(b)()
	for b.Loop() {
		var viewers sync.WaitGroup
		for range 50 {
			viewers.Go(func() {
				resp, err := http.Get(server.URL + "/")
				if err != nil {
					b.Error(err)
					return
				}
				defer resp.Body.Close()
				_, _ = io.Copy(io.Discard, resp.Body)
			})
		}
		viewers.Wait()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapInuse)-int64(before.HeapInuse))/(1<<20), "MiB-more")
}

// cpu reports, when what it returns is called, how much processor time an operation took: on a
// machine with other work the time on the clock says little.
func cpu(b *testing.B) (report func()) {
	used := func() time.Duration {
		var u unix.Rusage
		must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op") }
}

package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// The status that is kept in parts is what the whole summary is as JSON.
func TestTheStatusInPartsIsTheWhole(t *testing.T) {
	for name, n := range map[string]int{"an empty fleet": 0, "a fleet": 12} {
		fleet := newLive(n)
		var body statusBody
		check := func(when string) {
			t.Helper()
			want := must.Get(json.MarshalIndent(fleet.Summary().WithLists(), "", "  "))(t)
			got := must.Get(body.of(fleet.Rows(), fleet.CommitStatus()))(t)
			if diff := cmp.Diff(string(want)+"\n", string(got)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, when, diff)
			}
		}
		check("at first")
		if n == 0 {
			continue
		}
		fleet.set(3, model.StateError)
		check("after a change")
		fleet.remove(0)
		check("with a server less")
		fleet.commits = &report.Trouble{Message: "401 Unauthorized", Since: since}
		check("with commits whose status cannot be posted")
		fleet.commits = nil
		check("with commits whose status can be posted again")
	}
}

// Whoever asks only for what changed hears of a token that the Git host does not take any more.
func TestTheTagOfTheStatusIsAnotherWithThatOfCommits(t *testing.T) {
	fleet := newLive(1)
	h := NewHandler(Options{Fleet: fleet, Metrics: noMetrics, Log: discard})
	tag := ""
	for _, step := range []struct {
		commits *report.Trouble
		code    int
	}{
		{nil, 200}, {nil, 304},
		{&report.Trouble{Message: "401 Unauthorized", Since: since}, 200}, {&report.Trouble{Message: "401 Unauthorized", Since: since}, 304},
		{&report.Trouble{Message: "404 Not Found", Since: since}, 200}, {&report.Trouble{Message: "404 Not Found", Since: since.Add(time.Hour)}, 200},
		{nil, 200},
	} {
		fleet.commits = step.commits
		r := httptest.NewRequest(http.MethodGet, "/api/v1/status", nil)
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		tag = w.Header().Get("ETag")
		if w.Code != step.code {
			t.Errorf("with %+v: %d, want %d", step.commits, w.Code, step.code)
		}
		if shown := strings.Contains(w.Body.String(), `"commitStatus"`); shown != (step.commits != nil && step.code == 200) {
			t.Errorf("with %+v it is shown: %t", step.commits, shown)
		}
	}
}

func TestTheStatusIsMadeOnceAGeneration(t *testing.T) {
	fleet := newLive(3)
	var body statusBody
	first, _ := body.of(fleet.Rows(), fleet.CommitStatus())
	again, _ := body.of(fleet.Rows(), fleet.CommitStatus())
	if &first[0] != &again[0] {
		t.Error("it was made again though nothing changed")
	}
	fleet.set(0, model.StateError)
	if later, _ := body.of(fleet.Rows(), fleet.CommitStatus()); &later[0] == &first[0] {
		t.Error("a server changed, and it is the same")
	}
}

// BenchmarkStatus makes the status of 10,000 servers, of which one changed since. Its yardstick
// is to write out the whole summary. It says what that takes of the processor, for the time
// is that of others, too.
func BenchmarkStatus(b *testing.B) {
	fleet := newLive(10000)
	summary := fleet.Summary().WithLists()
	whole := cpuOf(b, 5, func() {
		must.Get(json.Marshal(summary))(b)
	})
	var body statusBody
	must.Get(body.of(fleet.Rows(), fleet.CommitStatus()))(b)
	var reports []*model.Report
	for _, state := range []model.ServerState{model.StateError, model.StateReserved} {
		fleet.set(3, state)
		reports = append(reports, fleet.report)
	}
	b.Run("nothing changed", func(b *testing.B) {
		for b.Loop() {
			if _, err := body.of(fleet.Rows(), fleet.CommitStatus()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one server changed", func(b *testing.B) {
		n := 0
		for b.Loop() {
			took := cpuOf(b, 10, func() {
				n++
				fleet.report = reports[n%2]
				if _, err := body.of(fleet.Rows(), fleet.CommitStatus()); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(float64(took.Microseconds())/1000, "cpu-ms")
			b.ReportMetric(float64(took)/float64(whole), "ratio-to-whole")
		}
	})
}

func cpuOf(b *testing.B, times int, do func()) time.Duration {
	used := func() time.Duration {
		var u unix.Rusage
		must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	least := time.Duration(0)
	for range times {
		begun := used()
		do()
		if took := used() - begun; least == 0 || took < least {
			least = took
		}
	}
	return least
}

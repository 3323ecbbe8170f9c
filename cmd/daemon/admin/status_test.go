package admin

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// The status that is kept in parts is what the whole summary is as JSON.
func TestTheStatusInPartsIsTheWhole(t *testing.T) {
	for name, n := range map[string]int{"an empty fleet": 0, "a fleet": 12} {
		fleet := newLive(n)
		var body statusBody
		check := func(when string) {
			t.Helper()
			want, err := json.MarshalIndent(fleet.Summary().WithLists(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got, err := body.of(fleet.Rows())
			if err != nil {
				t.Fatal(err)
			}
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
		if len(body.parts) != 3*n {
			t.Errorf("%d parts are kept of %d objects", len(body.parts), 3*n)
		}
	}
}

func TestTheStatusIsMadeOnceAGeneration(t *testing.T) {
	fleet := newLive(3)
	var body statusBody
	first, _ := body.of(fleet.Rows())
	again, _ := body.of(fleet.Rows())
	if &first[0] != &again[0] {
		t.Error("it was made again though nothing changed")
	}
	fleet.set(0, model.StateError)
	if later, _ := body.of(fleet.Rows()); &later[0] == &first[0] {
		t.Error("a server changed, and it is the same")
	}
}

// BenchmarkStatus makes the status of 10,000 servers, of which one changed since. Its yardstick
// is to write out the whole summary.
func BenchmarkStatus(b *testing.B) {
	fleet := newLive(10000)
	summary := fleet.Summary().WithLists()
	begun := time.Now()
	const times = 5
	for range times {
		if _, err := json.Marshal(summary); err != nil {
			b.Fatal(err)
		}
	}
	whole := float64(time.Since(begun).Nanoseconds()) / times
	var body statusBody
	if _, err := body.of(fleet.Rows()); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change bool
	}{{"nothing changed", false}, {"one server changed", true}} {
		b.Run(c.name, func(b *testing.B) {
			states := []model.ServerState{model.StateError, model.StateReserved}
			n := 0
			for b.Loop() {
				if c.change {
					fleet.set(3, states[n%2])
					n++
				}
				if _, err := body.of(fleet.Rows()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/whole, "ratio-to-whole")
		})
	}
}

package reconcile

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/proposal"
)

// still is a store whose content a benchmark changes.
type still struct{ observed *model.Observed }

func (s *still) Observed() *model.Observed { return s.observed }

func (s *still) Save(context.Context, proposal.Changes) error { return nil }

func (s *still) Changed() <-chan struct{} { return nil }

// change has the records of n servers be others, from server first on.
func (s *still) change(first, n int) {
	o := *s.observed
	o.Servers = maps.Clone(o.Servers)
	for i := range n {
		name := model.ServerName(fmt.Sprintf("bmc%05d-system-0", (first+i)%len(o.Servers)))
		rec := *o.Servers[name]
		rec.Life.Since = rec.Life.Since.Add(time.Second)
		o.Servers[name] = &rec
	}
	s.observed = &o
}

func planned(b *testing.B, servers, bound int) (*still, *Loop, *Reporter) {
	in := plantest.BigFleet(servers, bound)
	store := &still{in.Observed}
	loop := NewLoop(Options{
		Desired: func() *model.Desired { return in.Desired }, Store: store, Policy: in.Policy, Clock: func() time.Time { return in.Now },
	})
	loop.readings, loop.bmcRead = in.Readings, in.BMCRead
	stepped(b, loop)
	r := &Reporter{Loop: loop, Fence: func() uint64 { return 1 }}
	r.Report()
	return store, loop, r
}

func stepped(b *testing.B, loop *Loop) {
	if _, err := loop.Step(b.Context(), loop.Clock()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScrapeOfAnIdleFleet scrapes the metrics of 10,000 servers of which nothing has
// changed, by default and with all that admin.serverMetrics adds.
func BenchmarkScrapeOfAnIdleFleet(b *testing.B) {
	const servers = 10000
	_, _, r := planned(b, servers, 2000)
	for _, all := range []bool{false, true} {
		b.Run(fmt.Sprintf("all %t", all), func(b *testing.B) {
			c, size := NewFleetCollector(r.Report, all), 0
			for b.Loop() {
				size = len(scraped(b, c))
			}
			b.ReportMetric(float64(size)/servers, "B/server")
		})
	}
}

// BenchmarkBusyPublication reports the fleet after the records of some servers have
// changed and the loop has planned for it, with and without a move under way that will
// change another.
func BenchmarkBusyPublication(b *testing.B) {
	for _, moving := range []bool{false, true} {
		b.Run(fmt.Sprintf("500 of 5000 changed, moving %t", moving), func(b *testing.B) {
			store, loop, r := planned(b, 5000, 1000)
			first := 0
			for b.Loop() {
				b.StopTimer()
				store.change(first, 500)
				first += 500
				if moving {
					rec := *store.observed.Servers["bmc04999-system-0"]
					rec.Life.State = model.StateReserved
					loop.busy[rec.Name] = &rec
				}
				stepped(b, loop)
				b.StartTimer()
				r.Report()
			}
		})
	}
}

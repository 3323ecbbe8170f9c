package report

import (
	"fmt"
	"testing"
	"time"

	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/world"
)

// BenchmarkReport makes the second report of a fleet in which nothing changed;
// its yardstick is the first, in which every document is made.
func BenchmarkReport(b *testing.B) {
	in := plantest.BigFleet(10000, 2000)
	var p Projector
	start := time.Now()
	reportBy(&p, in)
	first := time.Since(start)
	for b.Loop() {
		reportBy(&p, in)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(first.Nanoseconds()), "ratio-to-first")
}

// BenchmarkNewFleet plans and reports fleets of which nothing was known; what a
// server costs must not grow with the fleet.
func BenchmarkNewFleet(b *testing.B) {
	for _, n := range []int{300, 3000} {
		b.Run(fmt.Sprintf("%d new servers with manifests and waiting claims", n), func(b *testing.B) {
			d, o := fleettest.NewFleet(n)
			in := &world.Input{Desired: d, Observed: o, Policy: policy.Default(), Now: fleettest.Now}
			for b.Loop() {
				plan.Plan(in)
				reportOf(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/server")
		})
	}
}

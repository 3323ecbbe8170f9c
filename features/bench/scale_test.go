package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"ingot/model"
)

const (
	goalGrowth  = 2.7 // onboarding 5,000 servers, by what 2,000 take
	goalDelayed = time.Second
	unfitting   = 20000 // claims that no server fits
	claimsEach  = 5     // of which the median counts
)

// BenchmarkScale measures what more servers, and claims that none of them fits, cost
// those that are there. It takes about a quarter of an hour.
func BenchmarkScale(b *testing.B) {
	program := build(b)
	t := &table{TB: b, title: "scale"}
	var few time.Duration
	b.Run("2000 servers", func(b *testing.B) {
		few = newFleet(b, program, 2000).onboardWithin(20 * time.Minute)
		t.duration("2,000 BMCs committed until all Available", few, none, none)
		b.ReportMetric(few.Seconds(), "s-onboard")
	})
	b.Run("5000 servers", func(b *testing.B) {
		f := newFleet(b, program, 5000)
		many := f.onboardWithin(30 * time.Minute)
		t.duration("5,000 BMCs committed until all Available", many, time.Duration(goalGrowth*float64(few)), few)
		t.number("  plans", f.metric("ingot_plan_duration_seconds_count"), none, none)
		t.number("  seconds of planning", f.metric("ingot_plan_part_duration_seconds_sum", `part="plan"`), none, none)
		t.number("  seconds of saving", f.metric("ingot_plan_part_duration_seconds_sum", `part="save"`), none, none)
		b.ReportMetric(many.Seconds(), "s-onboard")
		alone := f.claimedAfter(0)
		f.commit(f.unfitting(), "claim what nobody has")
		began := time.Now()
		f.await("all claims wait", 10*time.Minute, func() bool {
			time.Sleep(time.Second)
			return f.metric("ingot_claims", `phase="Unbound"`) == unfitting
		})
		t.duration("20,000 claims that nothing fits committed until all wait", time.Since(began), none, none)
		among := f.claimedAfter(claimsEach)
		t.duration(fmt.Sprintf("a claim committed until its server is asked to power on, median of %d", claimsEach), alone, none, none)
		t.duration("  the same beside those claims", among, alone+goalDelayed, alone)
		b.ReportMetric((among - alone).Seconds(), "s-delayed")
	})
	t.print(os.Stderr)
}

// claimedAfter returns the median of how long claims take that are committed one by one, each
// in a quiet fleet of which so many servers are claimed.
func (f *fleet) claimedAfter(claimed int) time.Duration {
	f.Helper()
	var took []time.Duration
	for i := range claimsEach {
		f.settle()
		took = append(took, f.claimed(claimed+i))
	}
	slices.Sort(took)
	f.Logf("%d claims, of %d that are there: %s", claimsEach, claimed, took)
	return took[claimsEach/2]
}

func (f *fleet) claimed(i int) time.Duration {
	f.Helper()
	files := f.claims(i, i+1)
	committed := time.Now()
	f.commit(files, "claim a server")
	f.await("the claimed server is asked to power on", 5*time.Minute, func() bool { return f.count(isOn) == i+1 })
	return f.lastPowerOn().Sub(committed)
}

func (f *fleet) unfitting() map[string]string {
	files := make(map[string]string, unfitting)
	for i := range unfitting {
		name := fmt.Sprintf("none-%05d", i)
		files["claims/"+name+".yaml"] = fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: %s
  namespace: default
spec:
  power: "On"
  image: %s
  serverSelector:
    matchLabels:
      rack: %s
`, model.APIVersion, model.KindServerClaim, name, f.image, name)
	}
	return files
}

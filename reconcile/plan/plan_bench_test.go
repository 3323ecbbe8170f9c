package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

func requires(k, v string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

func BenchmarkPlan(b *testing.B) {
	b.Run("10000 servers and 2000 claims unchanged", func(b *testing.B) { benchPlan(b, remembered(bigFleet(10000, 2000)), 0) })
	b.Run("10000 servers that 4 rules are for, half of them met", func(b *testing.B) {
		in := bigFleet(10000, 2000)
		for _, r := range []*model.ServerReadinessRule{
			readinessRule("a"), readinessRule("b", requiring("Discovered", "False")),
			readinessRule("c", ofRack("7")), readinessRule("d", requiring("BMCReadable", "True"), bootstrap),
		} {
			in.Desired.Add(r)
		}
		for _, rec := range in.Observed.Servers {
			rec.Life.BootstrapCompleted = []string{"d"}
		}
		benchPlan(b, in, 0)
	})
	b.Run("1000 of 10000 servers changed", func(b *testing.B) {
		in := bigFleet(10000, 2000)
		n := 0
		for name, r := range in.Readings {
			if n++; n <= 1000 {
				r.At = in.Now.Add(-time.Hour)
				in.Readings[name] = r
			}
		}
		benchPlan(b, in, 1000)
	})
	for _, n := range []int{100, 1000, 5000, 10000} {
		b.Run(fmt.Sprintf("allocate %d claims to %d servers", n, n), func(b *testing.B) { benchPlan(b, waiting(bigFleet(n, 0), n, nil), n) })
		b.Run(fmt.Sprintf("allocate %d claims by distinct labels", n), func(b *testing.B) {
			benchPlan(b, waiting(bigFleet(n, 0), n, func(i int, c *model.ServerClaim) { c.Spec.ServerSelector = requires("slot", fmt.Sprint(i)) }), n)
		})
	}
	b.Run("allocate 5000 claims whose boots were checked to 5000 servers", func(b *testing.B) {
		in := waiting(bigFleet(5000, 0), 5000, nil)
		in.Checked = map[proposal.BootKey]proposal.Checked{}
		for key := range plan.Plan(in).Wanted {
			in.Checked[key] = proposal.Checked{}
		}
		benchPlan(b, in, 5000)
	})
	for _, n := range []int{2000, 5000, 10000} {
		b.Run(fmt.Sprintf("%d servers, 80 percent of them bound, and 20000 claims", n), func(b *testing.B) {
			bound := n * 4 / 5
			benchPlan(b, unfit(bigFleet(n, bound), 20_000-bound), 0)
		})
	}
	b.Run("say why none of 5000 servers is free for 20000 claims", func(b *testing.B) { benchPlan(b, unfit(bigFleet(5000, 0), 20_000), 0) })
	b.Run("say why none of 500 servers is free for 500 claims of 250 labels", func(b *testing.B) {
		in, labels := bigFleet(500, 0), make(map[string]string)
		for i := range 250 {
			labels[fmt.Sprint("key-", i)] = "value"
		}
		for i := range 500 {
			fleettest.AddManifest(in.Desired, i, model.ServerSpec{})
			in.Desired.Servers[fleettest.ServerName(i)].Labels = labels
		}
		benchPlan(b, waiting(in, 500, func(i int, c *model.ServerClaim) {
			of := maps.Clone(labels)
			of["last"] = fmt.Sprint(i)
			c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: of}
		}), 0)
	})
	b.Run("allocate 100 claims to 50 servers", func(b *testing.B) { benchPlan(b, waiting(bigFleet(50, 0), 100, nil), 50) })
	b.Run("45000 claims with expressions and tolerations wait for one of 5000 servers", func(b *testing.B) {
		benchPlan(b, remembered(waiting(bigFleet(5000, 5000), 45_000, func(i int, c *model.ServerClaim) {
			c.Spec.ServerSelector = &metav1.LabelSelector{
				MatchLabels:      map[string]string{"rack": fmt.Sprint(i % 200)},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "slot", Operator: metav1.LabelSelectorOpIn, Values: []string{"1", "2"}}},
			}
			c.Spec.Tolerations = []model.Toleration{{Key: "dedicated", Operator: "Equal", Value: "web", Effect: model.TaintNoBind}}
		})), 0)
	})
	b.Run("20000 servers with manifests behind 10000 BMCs", func(b *testing.B) { benchPlan(b, remembered(pairedFleet(20_000)), 0) })
}

// unfit adds claims that have waited before for labels which no server has, each for another one.
func unfit(in *input, n int) *input {
	waiting(in, n, func(i int, c *model.ServerClaim) { c.Spec.ServerSelector = requires("none", fmt.Sprint(i)) })
	return remembered(in)
}

// remembered has all claims as a former plan recorded them, and all installs under the key of this process.
func remembered(in *input) *input {
	in.DigestKey = model.NewDigestKey([]byte(strings.Repeat("k", 32)))
	for _, rec := range in.Observed.Servers {
		if rec.Install.Digest != "" {
			rec.Install.Digest = in.DigestKey.For(model.DefaultNamespace).Sum(rec.Install.Digest)
		}
	}
	for _, rec := range plan.Plan(in).Decided.Claims {
		in.Observed.Claims[rec.Name] = rec
	}
	return in
}

// benchPlan compares the CPU time of a plan with the floor. It takes the best of each, which others on
// the machine disturb least.
func benchPlan(b *testing.B, in *input, moves int) {
	if got := len(plan.Plan(in).Moves); got != moves {
		b.Fatalf("%d moves, want %d", got, moves)
	}
	bestPlan, bestFloor := time.Hour, time.Hour
	b.ReportAllocs()
	for b.Loop() {
		bestPlan = min(bestPlan, cpuTimeOf(func() { plan.Plan(in) }))
		b.StopTimer()
		for range 2 {
			bestFloor = min(bestFloor, cpuTimeOf(func() { floor(in) }))
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(bestPlan.Microseconds())/1000, "cpu-ms/plan")
	b.ReportMetric(float64(bestPlan)/float64(bestFloor), "x-floor")
}

// floor is the yardstick: no more than to sort the names of the servers, and to look each of them up.
func floor(in *input) {
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(in.Observed.Servers)) {
		rec := in.Observed.Servers[name]
		if in.Observed.ServerFacts[name] != nil && in.Desired.BMCs[rec.BMC] != nil && !in.Readings[name].At.IsZero() {
			seen++
		}
	}
	if seen != len(in.Observed.Servers) {
		panic("a server of the fleet is not whole")
	}
}

// pairedFleet is a settled fleet of servers that all serve a claim and have a manifest, two
// behind each BMC.
func pairedFleet(n int) *input {
	in := bigFleet(n, n)
	for i := range n {
		fleettest.AddManifest(in.Desired, i, model.ServerSpec{})
		if i%2 == 0 {
			continue
		}
		rec := in.Observed.Servers[fleettest.ServerName(i)]
		own, other := rec.BMC, model.BMCName(fleettest.BMCName(i-1))
		rec.BMC, rec.SystemURI = other, "/2"
		facts := in.Observed.BMCFacts[other]
		facts.Systems = append(facts.Systems, model.SystemFact{URI: "/2", UUID: rec.UUID})
		delete(in.Desired.BMCs, own)
		delete(in.Observed.BMCs, own)
		delete(in.Observed.BMCFacts, own)
	}
	return in
}

// cpuTimeOf is the CPU time that this process uses while f runs.
func cpuTimeOf(f func()) time.Duration {
	var before, after unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &before)
	f()
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &after)
	return time.Duration(after.Nano() - before.Nano())
}

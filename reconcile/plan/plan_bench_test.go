package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"ingot/model"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digestOf is what an image without anything else is known by.
func digestOf(image string) string {
	sum := sha256.Sum256([]byte(image + "\x00\x00"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// bigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available.
func bigFleet(servers, bound int) *Input {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := &Input{
		Desired: model.NewDesired(), Observed: model.NewObserved(), Readings: make(map[model.ServerName]Reading),
		BMCRead: make(map[model.BMCName]time.Time), Policy: DefaultPolicy(), Now: now,
	}
	in.Desired.Revision, in.Observed.Fleet.Applied = "main@sha1:1", model.Applied{Branch: "main", Commit: "1"}
	in.Desired.Add(&model.BMCSecret{Meta: model.Meta{Name: "s"}, Values: map[string]model.Sensitive{"username": model.NewSensitive("u")}})
	for i := range servers {
		bmc := model.BMCName(fmt.Sprintf("bmc%05d", i))
		name := model.ServerName(string(bmc) + "-system-0")
		uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)
		in.Desired.Add(&model.BMC{
			Meta: model.Meta{Name: string(bmc), Labels: map[string]string{"rack": fmt.Sprint(i % 40), "slot": fmt.Sprint(i)}},
			Spec: model.BMCSpec{Access: &model.InlineEndpoint{IP: "192.0.2.1"}, BMCSecretRef: model.LocalRef{Name: "s"}, Protocol: model.Protocol{Port: 443}},
		})
		in.Observed.BMCs[bmc] = &model.BMCRecord{Name: bmc, Address: "192.0.2.1:443"}
		in.Observed.BMCFacts[bmc] = &model.BMCFacts{Name: bmc, Systems: []model.SystemFact{{URI: "/1", UUID: uuid}}}
		in.BMCRead[bmc] = now
		rec := &model.ServerRecord{Name: name, BMC: bmc, SystemURI: "/1", UUID: uuid, State: model.StateAvailable, Since: now.Add(-time.Hour)}
		inv := &model.Inventory{}
		for n := range 4 {
			mac := fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>8, i&255, n)
			inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{Name: fmt.Sprint("eth", n), MACAddress: mac})
			rec.MACs = append(rec.MACs, model.ServerMAC{Address: mac, IdentifiedBy: model.MACByBMC})
		}
		power := model.PowerOff
		if i < bound {
			c := claim(fmt.Sprintf("c%05d", i))
			in.Desired.Add(c)
			in.Observed.Claims[c.ClaimName()] = &model.ClaimRecord{Name: c.ClaimName()}
			rec.State, rec.Claim, rec.WantPower, power = model.StateReserved, c.ClaimName(), model.PowerOn, model.PowerOn
			rec.Installed = digestOf(c.Spec.Image)
		}
		in.Observed.Servers[name] = rec
		in.Observed.ServerFacts[name] = &model.ServerFacts{Name: name, Power: power, Inventory: inv}
		in.Readings[name] = Reading{At: now.Add(-time.Second), Offs: 3, Reached: true}
	}
	return in
}

// waiting adds claims without a server; ask says what each asks for.
func waiting(in *Input, n int, ask func(i int, c *model.ServerClaim)) *Input {
	for i := range n {
		c := claim(fmt.Sprintf("w%05d", i))
		if ask != nil {
			ask(i, c)
		}
		in.Desired.Add(c)
	}
	return in
}

func label(k, v string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
}

func BenchmarkPlan(b *testing.B) {
	b.Run("10000 servers and 2000 claims unchanged", func(b *testing.B) { benchPlan(b, bigFleet(10000, 2000), 0) })
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
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("allocate %d claims to %d servers", n, n), func(b *testing.B) {
			benchPlan(b, waiting(bigFleet(n, 0), n, nil), n)
		})
		b.Run(fmt.Sprintf("allocate %d claims by distinct labels", n), func(b *testing.B) {
			benchPlan(b, waiting(bigFleet(n, 0), n, func(i int, c *model.ServerClaim) {
				c.Spec.ServerSelector = label("slot", fmt.Sprint(i))
			}), n)
		})
	}
	for _, n := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("say why none of 5000 servers is free for %d claims of distinct labels", n), func(b *testing.B) {
			benchPlan(b, waiting(bigFleet(5000, 0), n, func(i int, c *model.ServerClaim) {
				c.Spec.ServerSelector = label("none", fmt.Sprint(i))
			}), 0)
		})
	}
	b.Run("allocate 100 claims to 50 servers", func(b *testing.B) { benchPlan(b, waiting(bigFleet(50, 0), 100, nil), 50) })
}

func benchPlan(b *testing.B, in *Input, moves int) {
	if got := len(Plan(in).Moves); got != moves {
		b.Fatalf("%d moves, want %d", got, moves)
	}
	b.ReportAllocs()
	for b.Loop() {
		Plan(in)
	}
	perPlan := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(perPlan/float64(len(in.Observed.Servers)), "ns/server")
	b.ReportMetric(perPlan/float64(floor(in).Nanoseconds()), "x-floor")
}

// floor is the yardstick: the time that it takes to do no more than sort the
// names of the servers and look each of them up, the best of some tries.
func floor(in *Input) time.Duration {
	best := time.Hour
	for range 20 {
		start := time.Now()
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
		best = min(best, time.Since(start))
	}
	return best
}

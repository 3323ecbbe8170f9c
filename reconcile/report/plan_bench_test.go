package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"ingot/model"
	"ingot/reconcile/plan"
	"testing"
	"time"
)

// digestOf is what an image without anything else is known by.
func digestOf(image string) string {
	sum := sha256.Sum256([]byte(image + "\x00\x00"))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// bigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available.
func bigFleet(servers, bound int) *plan.Input {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := &plan.Input{
		Desired: model.NewDesired(), Observed: model.NewObserved(), Readings: make(map[model.ServerName]plan.Reading),
		BMCRead: make(map[model.BMCName]time.Time), Policy: plan.DefaultPolicy(), Now: now,
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
		in.Readings[name] = plan.Reading{At: now.Add(-time.Second), Offs: 3, Reached: true}
	}
	return in
}

// waiting adds claims without a server; ask says what each asks for.
func waiting(in *plan.Input, n int, ask func(i int, c *model.ServerClaim)) *plan.Input {
	for i := range n {
		c := claim(fmt.Sprintf("w%05d", i))
		if ask != nil {
			ask(i, c)
		}
		in.Desired.Add(c)
	}
	return in
}

// BenchmarkReport makes the second report of a fleet in which nothing changed;
// its yardstick is the first, in which every document is made.
func BenchmarkReport(b *testing.B) {
	in := bigFleet(10000, 2000)
	p := NewProjector()
	start := time.Now()
	p.Report(in, plan.Plan(in), 1, model.Holder{})
	first := time.Since(start)
	for b.Loop() {
		p.Report(in, plan.Plan(in), 1, model.Holder{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(first.Nanoseconds()), "ratio-to-first")
}

// newFleetOf is a fleet in which all servers and claims are new, and each server
// has a manifest that names it by its UUID.
func newFleetOf(n int) *plan.Input {
	d, o := model.NewDesired(), model.NewObserved()
	d.Add(&model.BMCSecret{Meta: model.Meta{Name: "s"}, Values: map[string]model.Sensitive{"username": model.NewSensitive("u")}})
	for i := range n {
		b, u := fmt.Sprintf("bmc%05d", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)
		d.Add(&model.BMC{Meta: model.Meta{Name: b}, Spec: model.BMCSpec{Access: &model.InlineEndpoint{IP: "192.0.2.1"}, BMCSecretRef: model.LocalRef{Name: "s"}, Protocol: model.Protocol{Port: 443}}})
		d.Add(&model.Server{Meta: model.Meta{Name: fmt.Sprintf("rack-%05d", i)}, Spec: model.ServerSpec{SystemUUID: u}})
		o.BMCs[model.BMCName(b)] = &model.BMCRecord{Name: model.BMCName(b), Address: "192.0.2.1:443"}
		o.BMCFacts[model.BMCName(b)] = &model.BMCFacts{Name: model.BMCName(b), Systems: []model.SystemFact{{URI: "/s", UUID: u}}}
		d.Add(claim(fmt.Sprintf("c%05d", i)))
	}
	return &plan.Input{Desired: d, Observed: o, Policy: plan.DefaultPolicy(), Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

// BenchmarkNewFleet plans and reports fleets of which nothing was known; what a
// server costs must not grow with the fleet.
func BenchmarkNewFleet(b *testing.B) {
	for _, n := range []int{300, 3000} {
		b.Run(fmt.Sprintf("%d new servers with manifests and waiting claims", n), func(b *testing.B) {
			in := newFleetOf(n)
			for b.Loop() {
				plan.Plan(in)
				reportOf(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/server")
		})
	}
}

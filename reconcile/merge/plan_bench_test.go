package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"ingot/model"
	"ingot/reconcile/plan"
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

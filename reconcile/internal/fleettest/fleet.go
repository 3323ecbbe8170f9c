package fleettest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"ingot/model"
)

// Now is when a big fleet is looked at.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// BigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available.
func BigFleet(servers, bound int) (*model.Desired, *model.Observed) {
	d, o := model.NewDesired(), model.NewObserved()
	d.Revision, o.Fleet.Applied = "main@sha1:1", model.Applied{Branch: "main", Commit: "1"}
	d.Add(bmcSecret())
	for i := range servers {
		bmc := model.BMCName(BMCName(i))
		addBMC(d, o, bmc, "192.0.2.1", model.SystemFact{URI: "/1", UUID: systemUUID(i)})
		d.BMCs[bmc].Labels = map[string]string{"rack": fmt.Sprint(i % 40), "slot": fmt.Sprint(i)}
		rec := &model.ServerRecord{
			RecordIdentity: model.RecordIdentity{Name: ServerName(i), BMC: bmc, SystemURI: "/1", UUID: systemUUID(i)},
			Life:           model.RecordLife{State: model.StateAvailable, Since: Now.Add(-time.Hour)},
		}
		inv := &model.Inventory{}
		for n := range 4 {
			mac := fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>8, i&255, n)
			inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{Name: fmt.Sprint("eth", n), MACAddress: mac})
			rec.MACs = append(rec.MACs, model.ServerMAC{Address: mac, IdentifiedBy: model.MACByBMC})
		}
		power := model.PowerOff
		if i < bound {
			c := Claim(fmt.Sprintf("c%05d", i))
			d.Add(c)
			o.Claims[c.ClaimName()] = &model.ClaimRecord{Name: c.ClaimName()}
			rec.Life.State, rec.Claim.Name, rec.Claim.Power, power = model.StateReserved, c.ClaimName(), model.PowerOn, model.PowerOn
			rec.Install.Digest = DigestOf(c.Spec.Image)
		}
		o.Servers[rec.Name] = rec
		o.ServerFacts[rec.Name] = &model.ServerFacts{Name: rec.Name, Power: power, Inventory: inv}
	}
	return d, o
}

// OfEach says the same of each object.
func OfEach[Name comparable, Object, Fact any](objects map[Name]Object, fact Fact) map[Name]Fact {
	facts := make(map[Name]Fact, len(objects))
	for name := range objects {
		facts[name] = fact
	}
	return facts
}

// NewFleet is a fleet in which all servers and claims are new, and each server has a
// manifest that names it by its UUID.
func NewFleet(n int) (*model.Desired, *model.Observed) {
	d, o := model.NewDesired(), model.NewObserved()
	d.Add(bmcSecret())
	for i := range n {
		addBMC(d, o, model.BMCName(BMCName(i)), "192.0.2.1", model.SystemFact{URI: "/s", UUID: systemUUID(i)})
		d.Add(&model.Server{
			Meta: model.Meta{Name: fmt.Sprintf("rack-%05d", i)},
			Spec: model.ServerSpec{SystemUUID: systemUUID(i)},
		})
		d.Add(Claim(fmt.Sprintf("c%05d", i)))
	}
	return d, o
}

// AddDuplicate adds a BMC that shows a machine with the UUID of a big fleet's server.
func AddDuplicate(d *model.Desired, o *model.Observed, i int) {
	addBMC(d, o, "twin", "192.0.2.2", model.SystemFact{URI: "/9", UUID: o.Servers[ServerName(i)].UUID})
}

// AddWaiting adds claims without a server; ask says what each asks for.
func AddWaiting(d *model.Desired, n int, ask func(i int, c *model.ServerClaim)) {
	for i := range n {
		c := Claim(fmt.Sprintf("w%05d", i))
		if ask != nil {
			ask(i, c)
		}
		d.Add(c)
	}
}

// AddManifest adds a manifest of a big fleet's server.
func AddManifest(d *model.Desired, i int, spec model.ServerSpec) {
	d.Add(&model.Server{Meta: model.Meta{Name: string(ServerName(i))}, Spec: spec})
}

// Ticketed gives the first server of a big fleet an open ticket that was armed a minute
// ago, and a power-on with it half a minute ago.
func Ticketed(o *model.Observed, state model.ServerState, purpose model.TicketPurpose) *model.ServerRecord {
	rec := o.Servers[ServerName(0)]
	rec.Life.State, rec.Install.Digest, rec.Life.Since = state, "", Now.Add(-time.Minute)
	rec.Boot.Ticket = &model.Ticket{
		ID: "t", Server: rec.Name, Purpose: purpose, ArmedAt: Now.Add(-time.Minute),
		Digest: DigestOf("os:1"), Image: model.PinnedImage{Ref: "os:1", Architecture: "amd64"},
	}
	switch purpose {
	case model.PurposeClaim:
		rec.Boot.Ticket.Claim = rec.Claim.Name
	case model.PurposeDiscovery, model.PurposeCleanup:
		rec.Claim.Name, rec.Boot.Ticket.CleanupMode = "", model.CleanupQuick
	}
	rec.Power.Asked = &model.PowerAsked{Want: model.PowerOn, At: Now.Add(-30 * time.Second), Reached: true}
	return rec
}

// ChangeRecord changes the record of a big fleet's server; whoever has the one of before
// keeps it as it was.
func ChangeRecord(o *model.Observed, i int, change func(*model.ServerRecord)) {
	rec := *o.Servers[ServerName(i)]
	change(&rec)
	o.Servers[rec.Name] = &rec
}

// BMCName names a BMC of a big fleet.
func BMCName(i int) string { return fmt.Sprintf("bmc%05d", i) }

// ServerName names a server of a big fleet.
func ServerName(i int) model.ServerName { return model.ServerName(BMCName(i) + "-system-0") }

// DigestOf is what an image without anything else is known by.
func DigestOf(image string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d %s0 0 0 0 ", len(image), image)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func systemUUID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1) }

func bmcSecret() *model.BMCSecret {
	return &model.BMCSecret{Meta: model.Meta{Name: "s"}, Values: map[string]model.Sensitive{"username": model.NewSensitive("u")}}
}

// addBMC adds a BMC that was read, and showed one system.
func addBMC(d *model.Desired, o *model.Observed, name model.BMCName, ip string, system model.SystemFact) {
	d.Add(&model.BMC{
		Meta: model.Meta{Name: string(name)},
		Spec: model.BMCSpec{
			Access:       &model.InlineEndpoint{IP: ip},
			BMCSecretRef: model.LocalRef{Name: "s"},
			Protocol:     model.Protocol{Port: 443},
		},
	})
	o.BMCs[name] = &model.BMCRecord{Name: name, Address: ip + ":443"}
	o.BMCFacts[name] = &model.BMCFacts{Name: name, Systems: []model.SystemFact{system}}
}

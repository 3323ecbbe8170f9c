package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

// TestAPlanWithAMemoryIsThatWithoutOne: whatever became of the fleet and of Git since. What was
// planned stays as it is, whatever is planned after it, for others still read it.
func TestAPlanWithAMemoryIsThatWithoutOne(t *testing.T) {
	all := gocmp.Exporter(func(reflect.Type) bool { return true })
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test is to be repeatable
		in := waiting(bigFleet(12, 4), 6, func(_ int, c *model.ServerClaim) { askAnew(r, c) })
		in.Policy.Tenants = model.Tenants{{Path: "alpha", Servers: requires("rack", "1")}}
		memory, revisions := &Memory{}, []*model.Desired{in.Desired}
		var wanted, planned []*Result
		for range 20 {
			next := observeAnew(r, in)
			switch r.IntN(4) {
			case 0: // nothing came to Git
			case 1: // what is in force is taken back
				next.Desired = revisions[r.IntN(len(revisions))]
			default:
				next.Desired = sharing(in.Desired, commitAnew(r, in.Desired))
				revisions = append(revisions, next.Desired)
			}
			in = next
			remembering := *in
			remembering.Memory = memory
			wanted, planned = append(wanted, Plan(in)), append(planned, Plan(&remembering))
		}
		if reflect.DeepEqual(wanted, planned) { // once all plans were made
			continue
		}
		if diff := gocmp.Diff(wanted, planned, all); diff != "" {
			t.Fatalf("seed %d (-without +with a memory):\n%s", seed, diff)
		}
	}
}

// observeAnew lets time pass and changes some of what is known of the fleet. What it does not
// change stays the same map, as it does in the snapshots of the store.
func observeAnew(r *rand.Rand, was *Input) *Input {
	in := *was
	in.Now = in.Now.Add([]time.Duration{0, time.Second, time.Minute, time.Hour, 24 * time.Hour}[r.IntN(5)])
	if r.IntN(4) == 0 {
		return &in
	}
	o := *in.Observed
	in.Observed = &o
	server := func() model.ServerName { return fleettest.ServerName(r.IntN(13)) }
	for range 1 + r.IntN(3) {
		switch r.IntN(9) {
		case 0:
			o.Servers = changed(o.Servers, server(), func(rec *model.ServerRecord) {
				rec.Life.State = model.ServerStates[r.IntN(len(model.ServerStates))]
				if r.IntN(2) == 0 {
					rec.MACs = fleettest.MACs(model.MACByBMC, r.IntN(20))
				}
			})
		case 1: // it was bound, or given up
			claim := anyOf(r, in.Desired.Claims)
			o.Servers = changed(o.Servers, server(), func(rec *model.ServerRecord) {
				rec.Life.State, rec.Claim.Name = model.StateReserved, []model.ClaimName{claim, "", "default/gone"}[r.IntN(3)]
			})
		case 2: // it is behind another BMC, or a machine with the UUID of another
			o.Servers = changed(o.Servers, server(), func(rec *model.ServerRecord) {
				if r.IntN(2) == 0 {
					rec.BMC = model.BMCName(fleettest.BMCName(r.IntN(13)))
					return
				}
				rec.UUID = o.BMCFacts[settledBMC].Systems[0].UUID
				o.BMCFacts = changed(o.BMCFacts, rec.BMC, func(facts *model.BMCFacts) {
					facts.Systems = []model.SystemFact{{URI: rec.SystemURI, UUID: rec.UUID}}
				})
			})
		case 3:
			o.Servers = maps.Clone(o.Servers)
			delete(o.Servers, server())
		case 8: // it was installed with what its claim asks for now, or with something else
			o.Servers = changed(o.Servers, server(), func(rec *model.ServerRecord) {
				if c := in.Desired.Claims[rec.Claim.Name]; c != nil {
					boot, _ := proposal.BootOfClaim(in.Desired, c)
					rec.Life.State, rec.Install.Digest = model.StateReserved, proposal.KeyedDigest(in.DigestKey, &boot)
					if r.IntN(2) == 0 {
						rec.Install.Digest = fleettest.DigestOf("os:2")
					}
				}
			})
		case 4: // a BMC shows other systems than before
			o.BMCFacts = changed(o.BMCFacts, model.BMCName(fleettest.BMCName(1+r.IntN(11))), func(facts *model.BMCFacts) {
				facts.Systems = [][]model.SystemFact{
					nil, {{URI: "/1", Unread: true}}, {{URI: "/1", UUID: fleettest.GivenUUID}},
					{{URI: "/1", UUID: o.BMCFacts[settledBMC].Systems[0].UUID}},
				}[r.IntN(4)]
			})
		case 5:
			o.ServerFacts = changed(o.ServerFacts, server(), func(facts *model.ServerFacts) {
				facts.Power = []model.Power{model.PowerOn, model.PowerOff, model.PowerUnknown}[r.IntN(3)]
				facts.Inventory = &model.Inventory{MACAddresses: []string{fleettest.CardOf(r.IntN(20))}}
			})
		case 6:
			in.Readings = maps.Clone(in.Readings)
			in.Readings[server()] = proposal.Reading{At: in.Now, Offs: r.IntN(4), Reached: true, Failures: r.IntN(3)}
			in.BMCRead = maps.Clone(in.BMCRead)
			in.BMCRead[model.BMCName(fleettest.BMCName(r.IntN(13)))] = in.Now
		case 7: // what was decided is recorded
			o.Claims = maps.Clone(o.Claims)
			for _, rec := range Plan(was).Decided.Claims {
				o.Claims[rec.Name] = rec
			}
			o.Servers = maps.Clone(o.Servers)
			for name, m := range Plan(was).Moves {
				o.Servers[name] = m.Then
			}
			for _, name := range Plan(was).Decided.DropServers {
				delete(o.Servers, name)
			}
		}
	}
	return &in
}

// settledBMC is a BMC of which observeAnew changes nothing.
const settledBMC = "bmc00000"

// changed is a copy of a map in which one object is another.
func changed[K comparable, V any](of map[K]*V, key K, change func(*V)) map[K]*V {
	next := maps.Clone(of)
	if next[key] != nil {
		v := *next[key]
		change(&v)
		next[key] = &v
	}
	return next
}

// sharing is a revision that shares with the one before the maps that are the same, as those
// of the source do.
func sharing(was, d *model.Desired) *model.Desired {
	if maps.Equal(was.BMCs, d.BMCs) {
		d.BMCs = was.BMCs
	}
	if maps.Equal(was.Servers, d.Servers) {
		d.Servers = was.Servers
	}
	if maps.Equal(was.Secrets, d.Secrets) {
		d.Secrets = was.Secrets
	}
	if maps.Equal(was.Claims, d.Claims) {
		d.Claims = was.Claims
	}
	return d
}

// commitAnew changes some of what Git asks for. What it does not change stays the same
// object, as it does when Git is read.
func commitAnew(r *rand.Rand, was *model.Desired) *model.Desired {
	d := was.Clone()
	for range 1 + r.IntN(4) {
		switch claim, bmc, i := anyOf(r, d.Claims), anyOf(r, d.BMCs), r.IntN(12); r.IntN(12) {
		case 0:
			delete(d.Claims, claim)
		case 1:
			fleettest.AddWaiting(d, 1+r.IntN(12), func(_ int, c *model.ServerClaim) { askAnew(r, c) })
		case 2, 3:
			if c := d.Claims[claim]; c != nil && !c.BootConfiguration {
				c = new(*c)
				askAnew(r, c)
				d.Claims[claim] = c
			}
		case 4: // claims with one selector, as equal ones are when Git is read
			for _, name := range []model.ClaimName{claim, anyOf(r, d.Claims)} {
				if c, of := d.Claims[name], d.Claims[claim]; c != nil && of != nil {
					c = new(*c)
					c.Spec.ServerSelector = of.Spec.ServerSelector
					d.Claims[name] = c
				}
			}
		case 5:
			if b := d.BMCs[bmc]; b != nil {
				b = new(*b)
				b.Labels = map[string]string{"rack": fmt.Sprint(r.IntN(3))}
				d.BMCs[bmc] = b
			}
		case 6:
			delete(d.BMCs, bmc)
			if r.IntN(2) == 0 {
				d.Removed = maps.Clone(d.Removed)
				if d.Removed == nil {
					d.Removed = make(map[model.Identity][]model.Removal)
				}
				d.Removed[bmc.Identity()] = []model.Removal{{Revision: d.Revision}}
			}
		case 7:
			fleettest.AddManifest(d, i, model.ServerSpec{
				Unclaimable: r.IntN(4) == 0, Taints: []model.Taint{{Key: "dedicated", Value: fmt.Sprint(r.IntN(2)), Effect: model.TaintNoBind}},
			})
			d.Servers[fleettest.ServerName(i)].Labels = map[string]string{"slot": fmt.Sprint(r.IntN(3))}
			if r.IntN(2) == 0 {
				d.Servers[fleettest.ServerName(i)].Annotations = map[string]string{
					model.AnnotationMACAddresses: fleettest.CardOf(r.IntN(20)), model.AnnotationOperation: fmt.Sprint("forget#", r.IntN(20)),
				}
			}
		case 8:
			delete(d.Servers, fleettest.ServerName(i))
		case 11:
			secret := &model.Secret{Meta: model.Meta{Name: "ign", Namespace: "default"}}
			secret.Values = map[string]model.Sensitive{"ignition": model.NewSensitive(fmt.Sprint(r.IntN(3)))}
			d.Secrets = maps.Clone(d.Secrets)
			d.Add(secret)
		case 10: // the manifest of a machine by its UUID, whatever that is called here; no two have one
			uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)
			maps.DeleteFunc(d.Servers, func(_ model.ServerName, s *model.Server) bool { return s.Spec.SystemUUID == uuid })
			d.Add(&model.Server{Meta: model.Meta{Name: nameable(r)}, Spec: model.ServerSpec{SystemUUID: uuid}})
		case 9:
			d.Add(&model.ServerBootConfiguration{
				Meta: model.Meta{Name: fmt.Sprint("b", i%3)},
				Spec: model.ServerBootConfigurationSpec{ServerRef: model.LocalRef{Name: nameable(r)}, Image: "os:1"},
			})
		}
	}
	return d
}

// askAnew has a claim ask for other servers.
func askAnew(r *rand.Rand, c *model.ServerClaim) {
	c.Spec.ServerRef, c.Spec.ServerSelector, c.Spec.Tolerations, c.Tenant, c.Spec.IgnitionSecretRef = nil, nil, nil, "", nil
	if r.IntN(2) == 0 {
		c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"}
	}
	if r.IntN(4) > 0 {
		c.Spec.ServerSelector = requires([]string{"none", "rack", "slot"}[r.IntN(3)], fmt.Sprint(r.IntN(3)))
	}
	if r.IntN(4) == 0 && c.Spec.ServerSelector != nil {
		c.Spec.ServerSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: metav1.LabelSelectorOpExists}}
	}
	if r.IntN(4) == 0 {
		c.Spec.ServerRef = &model.LocalRef{Name: nameable(r)}
	}
	if r.IntN(2) == 0 {
		c.Spec.Tolerations = []model.Toleration{{Key: "dedicated", Operator: "Equal", Value: fmt.Sprint(r.IntN(2))}}
	}
	if r.IntN(6) == 0 {
		c.Tenant = "alpha"
	}
}

// nameable is the name of one of some servers, one of which there is not.
func nameable(r *rand.Rand) string { return string(fleettest.ServerName(10 + r.IntN(3))) }

// anyOf is one of the keys of a map, the zero one if there is none.
func anyOf[K cmp.Ordered, V any](r *rand.Rand, of map[K]V) (key K) {
	if keys := slices.Sorted(maps.Keys(of)); len(keys) > 0 {
		key = keys[r.IntN(len(keys))]
	}
	return key
}

// TestAMemoryForgetsWhatIsAskedNoLonger: and claims that ask for the same share it all the
// same, whether they are new or were there before.
func TestAMemoryForgetsWhatIsAskedNoLonger(t *testing.T) {
	m, d := new(Memory), model.NewDesired()
	d.Add(claim("always", func(c *model.ServerClaim) { c.Spec.ServerSelector = requires("rack", "a") }))
	for i := range 20 {
		d = d.Clone()
		for n := range 4 {
			d.Add(claim(fmt.Sprint("claim", n), func(c *model.ServerClaim) { c.Spec.ServerSelector = requires("slot", fmt.Sprint(i, n)) }))
		}
		d.Add(claim("also", func(c *model.ServerClaim) { c.Spec.ServerSelector = requires("rack", "a") }))
		m.see(d)
		byName := make(map[model.ClaimName]*asked)
		for _, c := range m.claims {
			byName[c.name] = m.asks(c)
		}
		if a, b := byName["default/always"], byName["default/also"]; a == nil || a != b {
			t.Errorf("revision %d: claims that ask for the same ask %p and %p", i, a, b)
		}
		if most := 3 * len(d.Claims); len(m.asked) > most {
			t.Errorf("revision %d: %d are remembered of %d claims, want %d at most", i, len(m.asked), len(d.Claims), most)
		}
	}
}

package reconcile

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// whose are the tenants of these tests: alpha and beta share the namespace default.
var whose = model.Tenants{
	{Path: "ops", Kinds: []model.Kind{"*"}, Namespaces: []string{"*"}, BMCNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	{Path: "alpha", Namespaces: []string{"default"}, Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "b"}}},
	{Path: "beta", Kinds: []model.Kind{"*"}, Namespaces: []string{"default"}},
	{Path: "gamma", Kinds: []model.Kind{model.KindServerClaim, model.KindServerMaintenance, model.KindBMCSecret}, Namespaces: []string{"default"}},
}

// of has a claim be a tenant's.
func of(tenant string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) { c.Tenant = tenant }
}

// owned is a world whose BMCs are the operator's.
func owned(t *testing.T, servers int, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, servers)
		w.tenants = whose
		for _, b := range w.desired.BMCs {
			b.Tenant = "ops"
		}
		w.desired.BMCSecrets["s"].Tenant = "ops"
		w.start()
		test(w)
		w.stop()
	})
}

// heir commits a claim whose namesake another tenant has taken away.
func (w *world) heir(c *model.ServerClaim, before string) {
	w.took(func(d *model.Desired) { d.Add(c) }, c.Identity(), before)
}

// took commits a change by which a tenant takes an object away.
func (w *world) took(change func(d *model.Desired), id model.Identity, tenant string) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Removed = maps.Clone(d.Removed)
	d.Revision += "1"
	change(d)
	d.Removed[id] = model.Removal{Revision: d.Revision, At: time.Now(), Tenant: tenant}
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

func TestAClaimThatAnotherTenantHasTheNameOfIsReleased(t *testing.T) {
	owned(t, 1, func(w *world) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		disk := w.seen(0).disk
		w.heir(claim("web", of("gamma")), "beta")
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 2 || disk == "" || w.Observed().Servers[m.name].Tenant != "gamma" {
			t.Errorf("installed %d times for %q; it was released, wiped and given to the other", m.installs, w.Observed().Servers[m.name].Tenant)
		}
	})
}

func TestAClaimThatIsHandedOverKeepsItsServer(t *testing.T) {
	owned(t, 1, func(w *world) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("gamma"))) })
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || w.Observed().Servers[m.name].Tenant != "gamma" {
			t.Errorf("installed %d times, of %q", m.installs, w.Observed().Servers[m.name].Tenant)
		}
	})
}

// A removal is of one tenant's claim: another's that cannot be read stays.
func TestARemovalIsOfOneTenantsClaim(t *testing.T) {
	for name, c := range map[string]struct {
		by, want string
	}{
		"another tenant's":           {"gamma", "Reserved On default/web"},
		"its own":                    {"beta", "Available Off"},
		"of before, or of no tenant": {"", "Available Off"},
	} {
		t.Run(name, func(t *testing.T) {
			owned(t, 1, func(w *world) {
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.took(removeWeb, model.ClaimName("default/web").Identity(), c.by)
				w.expect(10*time.Minute, 0, c.want)
			})
		})
	}
}

// Two servers may have claims of one name: one is being released, one is the heir's.
func TestEachServersRemovalIsNoted(t *testing.T) {
	web := model.ClaimName("default/web")
	removedBy := func(tenant string) model.RemovedObject {
		return model.RemovedObject{Identity: web.Identity(), Removal: model.Removal{Revision: "r", Tenant: tenant}}
	}
	rec := func(name model.ServerName, tenant string) *model.ServerRecord {
		return &model.ServerRecord{Name: name, State: model.StateReserved, Claim: web, Tenant: tenant}
	}
	observed := model.NewObserved()
	observed.Servers = map[model.ServerName]*model.ServerRecord{"s1": rec("s1", "beta"), "s2": rec("s2", "gamma"), "s3": rec("s3", "alpha")}
	observed.Fleet.Removed = []model.RemovedObject{removedBy("beta")}
	d := model.NewDesired()
	d.Removed = map[model.Identity]model.Removal{web.Identity(): removedBy("gamma").Removal}
	f := newFleet(&Input{Now: time.Now(), Desired: d, Observed: observed, Policy: Policy{Tenants: whose}})
	for name, want := range map[model.ServerName]string{"s1": stepRelease, "s2": stepRelease, "s3": ""} {
		if got := f.byName[name].endAsked(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if want := []model.RemovedObject{removedBy("beta"), removedBy("gamma")}; !slices.Equal(f.record.Removed, want) {
		t.Errorf("noted %+v, want %+v", f.record.Removed, want)
	}
}

func TestAServerThatIsGivenUpIsNoOtherTenants(t *testing.T) {
	release := &model.Release{Claim: "default/web"}
	for name, c := range map[string]struct {
		rec   model.ServerRecord
		claim string // whose the claim is
		want  bool
	}{
		"in use":                            {model.ServerRecord{State: model.StateReserved, Tenant: "beta"}, "gamma", false},
		"being released":                    {model.ServerRecord{State: model.StateReserved, Tenant: "beta", Release: release}, "gamma", true},
		"Released":                          {model.ServerRecord{State: model.StateReleased, Tenant: "beta"}, "gamma", true},
		"Released, and the claim is back":   {model.ServerRecord{State: model.StateReleased, Tenant: "beta", Release: release}, "beta", false},
		"Released by a record of before":    {model.ServerRecord{State: model.StateReleased}, "gamma", false},
		"Released, and no tenants any more": {model.ServerRecord{State: model.StateReleased, Tenant: "beta"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.rec.Claim = "default/web"
			f := &fleet{in: &Input{Desired: model.NewDesired(), Observed: model.NewObserved()}}
			if got := f.otherTenants(&c.rec, claim("web", of(c.claim))); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A record of before there were tenants is of whoever has the claim.
func TestARecordWithoutTenantIsOfItsClaims(t *testing.T) {
	owned(t, 1, func(w *world) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.heir(claim("web", of("gamma")), "")
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || w.Observed().Servers[m.name].Tenant != "gamma" {
			t.Errorf("installed %d times, of %q", m.installs, w.Observed().Servers[m.name].Tenant)
		}
	})
}

func TestATenantsClaimsAreBoundToItsServersAlone(t *testing.T) {
	owned(t, 2, func(w *world) {
		w.expect(time.Minute, 1, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("a", of("alpha"))); d.Add(claim("b", of("alpha"))) })
		w.expect(time.Minute, 1, "Reserved On default/a") // in rack b
		w.expect(time.Minute, 0, "Available Off")
		if why := claimWhy(w.loop.Input(time.Now()), "default/b"); !strings.Contains(why.text(), "1 not for alpha (git.tenants)") {
			t.Errorf("got %s", why.text())
		}
	})
}

func TestATenantsClaimHasItsOwnSecretsAlone(t *testing.T) {
	owned(t, 1, func(w *world) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(&model.Secret{Meta: model.Meta{Name: "s", Namespace: "default", Tenant: "beta"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive("{}")}})
			d.Add(claim("web", of("gamma"), func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "s"} }))
		})
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Secrets["default/s"].Tenant = "gamma" })
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

func TestATenantMaintainsTheServersOfItsClaimsAlone(t *testing.T) {
	owned(t, 1, func(w *world) {
		maintenance := func(tenant string) func(d *model.Desired) {
			return func(d *model.Desired) {
				d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m", Tenant: tenant}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "bmc00-system-0"}}})
			}
		}
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		says := func(want string) {
			t.Helper()
			if got := w.document("servermaintenances/m.yaml"); !strings.Contains(got, want) {
				t.Errorf("the status branch does not say %q:\n%s", want, got)
			}
		}
		w.commit(maintenance("gamma"))
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		says("refused: server bmc00-system-0 serves no claim of those below gamma")
		w.commit(maintenance("ops"))
		w.expect(10*time.Minute, 0, "Maintenance Off default/web")
		says("state: InMaintenance")
	})
}

// maintain has a ServerMaintenance of a tenant take a server out of service.
func maintain(tenant, server string) func(d *model.Desired) {
	return func(d *model.Desired) {
		d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m", Tenant: tenant}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: server}}})
	}
}

const firstServer = "bmc00-system-0"

// hideWeb has the claim default/web stand in Git, and not be in force.
func hideWeb(d *model.Desired) {
	delete(d.Claims, "default/web")
	d.Quarantined = map[model.Identity]bool{model.ClaimName("default/web").Identity(): true}
}

func removeWeb(d *model.Desired) { delete(d.Claims, "default/web") }

// A maintenance that has begun ends by a commit alone, whoever may begin one now.
func TestAMaintenanceThatHasBegunGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		claim string // whose the claim is
		by    string // whose the maintenance is
		then  func(d *model.Desired)
		after string // the maintenance
	}{
		"its folder may define no Servers now": {"beta", "", maintain("gamma", firstServer), "Reserved On default/web"},
		"its tenant's claim is not in force":   {"gamma", "gamma", hideWeb, "Reserved On default/web"},
		"its tenant's claim is removed":        {"gamma", "gamma", removeWeb, "Available Off"},
		"its tenant's claim is another's now":  {"gamma", "gamma", func(d *model.Desired) { d.Add(claim("web", of("beta"))) }, "Reserved On default/web"},
	} {
		t.Run(name, func(t *testing.T) {
			owned(t, 1, func(w *world) {
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web", of(c.claim))) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.commit(maintain(c.by, firstServer))
				w.expect(10*time.Minute, 0, "Maintenance Off default/web")
				w.commit(c.then)
				w.expect(10*time.Minute, 0, "Maintenance Off default/web")
				w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
				w.expect(30*time.Minute, 0, c.after)
			})
		})
	}
}

func TestATenantMaintainsTheServerOfItsClaimThatIsNotInForce(t *testing.T) {
	owned(t, 1, func(w *world) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("gamma"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(hideWeb)
		w.commit(maintain("gamma", firstServer))
		w.expect(10*time.Minute, 0, "Maintenance Off default/web")
	})
}

// What a commit took away ends, though another tenant's is called the same.
func TestAMaintenanceEndsByACommit(t *testing.T) {
	for name, then := range map[string]func(d *model.Desired){
		"it is for another server now": maintain("ops", "bmc01-system-0"),
		"another tenant has its name":  maintain("gamma", firstServer),
	} {
		t.Run(name, func(t *testing.T) {
			owned(t, 1, func(w *world) {
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.commit(maintain("ops", firstServer))
				w.expect(10*time.Minute, 0, "Maintenance Off default/web")
				w.took(then, model.MaintenanceIdentity("m"), "ops")
				w.expect(10*time.Minute, 0, "Reserved On default/web")
			})
		})
	}
}

func TestABMCSecretIsUsedByItsOwnTenantsBMCsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *model.Desired)
		want   string
	}{
		"another's BMC":           {func(d *model.Desired) { d.BMCs["bmc00"].Tenant = "beta" }, "SecretMissing"},
		"another's secret":        {func(d *model.Desired) { d.BMCSecrets["s"].Tenant = "gamma" }, "SecretMissing"},
		"a BMC in other networks": {func(d *model.Desired) { d.BMCs["bmc00"].Spec.Access.IP = "198.51.100.1" }, AddressNotAllowed},
		"its own":                 {func(*model.Desired) {}, "Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.tenants = whose
			w.desired.BMCs["bmc00"].Tenant, w.desired.BMCSecrets["s"].Tenant = "ops", "ops"
			c.change(w.desired)
			f := newFleet(&Input{Now: time.Now(), Desired: w.desired, Observed: w.observed, Policy: w.policy()})
			if got := f.bmcs[0]; got.why.Reason != c.want || c.want != "Pending" && !strings.Contains(got.why.Message, "git.tenants") {
				t.Errorf("got %+v", got.why)
			}
			if c.want != "Pending" && !f.bmcs[0].target.Password.IsZero() {
				t.Error("the password is handed out")
			}
		})
	}
}

func TestTenantsThatAskForTheSameAreToldApart(t *testing.T) {
	owned(t, 3, func(w *world) {
		w.expect(time.Minute, 2, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(claim("a", of("beta")))
			d.Add(claim("b", of("beta")))
			d.Add(claim("c", of("alpha")))
		})
		w.expect(time.Minute, 1, "Reserved On default/c") // in rack b
		w.expect(0, 0, "Reserved On default/a")
		w.expect(0, 2, "Reserved On default/b")
	})
}

func TestABMCThatWasFoundUsesSecretsOfWhoMayDefineIt(t *testing.T) {
	d := model.NewDesired()
	f := &fleet{in: &Input{Desired: d, Policy: Policy{Tenants: whose}}}
	for tenant, want := range map[string]bool{"ops": true, "beta": true, "gamma": false, "": false} {
		d.Add(&model.BMCSecret{Meta: model.Meta{Name: "bmc-1", Tenant: tenant}})
		if got := f.foundSecret("bmc-1"); (got != nil) != want {
			t.Errorf("of %q: got %v", tenant, got)
		}
	}
	f.in.Policy.Tenants = nil
	if f.foundSecret("bmc-1") == nil || f.foundSecret("bmc-2") != nil {
		t.Error("without tenants it is the one of its name")
	}
}

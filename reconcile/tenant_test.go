package reconcile

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// owned is a world whose BMCs are the operator's.
func owned(t *testing.T, servers int, test func(w *loopWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, servers)
		w.tenants = fleettest.Tenants
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
func (w *loopWorld) heir(c *model.ServerClaim, before string) {
	w.took(func(d *model.Desired) { d.Add(c) }, c.Identity(), before)
}

// took commits a change by which a tenant takes an object away.
func (w *loopWorld) took(change func(d *model.Desired), id model.Identity, tenant string) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Removed = maps.Clone(d.Removed)
	d.Revision += "1"
	change(d)
	d.Removed[id] = []model.Removal{{Revision: d.Revision, At: time.Now(), Tenant: tenant}}
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

func TestAClaimThatAnotherTenantHasTheNameOfIsReleased(t *testing.T) {
	owned(t, 1, func(w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		disk := w.seen(0).disk
		w.heir(claim("web", of("gamma")), "beta")
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 2 || disk == "" || w.Observed().Servers[m.name].Claim.Tenant != "gamma" {
			t.Errorf("installed %d times for %q; it was released, wiped and given to the other",
				m.installs, w.Observed().Servers[m.name].Claim.Tenant)
		}
	})
}

func TestAClaimThatIsHandedOverKeepsItsServer(t *testing.T) {
	owned(t, 1, func(w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(claim("web", of("gamma"))) })
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || w.Observed().Servers[m.name].Claim.Tenant != "gamma" {
			t.Errorf("installed %d times, of %q", m.installs, w.Observed().Servers[m.name].Claim.Tenant)
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
			owned(t, 1, func(w *loopWorld) {
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web", of("beta"))) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.took(removeWeb, model.ClaimName("default/web").Identity(), c.by)
				w.expect(10*time.Minute, 0, c.want)
			})
		})
	}
}

// A record of before there were tenants is of whoever has the claim.
func TestARecordWithoutTenantIsOfItsClaims(t *testing.T) {
	owned(t, 1, func(w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.heir(claim("web", of("gamma")), "")
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || w.Observed().Servers[m.name].Claim.Tenant != "gamma" {
			t.Errorf("installed %d times, of %q", m.installs, w.Observed().Servers[m.name].Claim.Tenant)
		}
	})
}

func TestATenantsClaimsAreBoundToItsServersAlone(t *testing.T) {
	owned(t, 2, func(w *loopWorld) {
		w.expect(time.Minute, 1, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("a", of("alpha"))); d.Add(claim("b", of("alpha"))) })
		w.expect(time.Minute, 1, "Reserved On default/a") // in rack b
		w.expect(time.Minute, 0, "Available Off")
		if why := plantest.ClaimWhy(w.loop.Input(time.Now()), "default/b"); !strings.Contains(why.Text(), "1 not for alpha (git.tenants)") {
			t.Errorf("got %s", why.Text())
		}
	})
}

func TestATenantsClaimHasItsOwnSecretsAlone(t *testing.T) {
	owned(t, 1, func(w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(&model.Secret{
				Meta:   model.Meta{Name: "s", Namespace: "default", Tenant: "beta"},
				Values: map[string]model.Sensitive{"ignition": model.NewSensitive("{}")},
			})
			d.Add(claim("web", of("gamma"), func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "s"} }))
		})
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Secrets["default/s"].Tenant = "gamma" })
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

func TestATenantMaintainsTheServersOfItsClaimsAlone(t *testing.T) {
	owned(t, 1, func(w *loopWorld) {
		maintenance := func(tenant string) func(d *model.Desired) {
			return func(d *model.Desired) {
				d.Add(&model.ServerMaintenance{
					Meta: model.Meta{Name: "m", Tenant: tenant},
					Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "bmc00-system-0"}},
				})
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
		d.Add(&model.ServerMaintenance{
			Meta: model.Meta{Name: "m", Tenant: tenant}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: server}},
		})
	}
}

const firstServer = "bmc00-system-0"

// hideWeb has the claim default/web stand in Git, and not be in force.
func hideWeb(d *model.Desired) {
	delete(d.Claims, "default/web")
	d.Quarantined = map[model.Identity][]string{model.ClaimName("default/web").Identity(): {""}}
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
		"its folder may define no Servers now": {claim: "beta", then: maintain("gamma", firstServer), after: "Reserved On default/web"},
		"its tenant's claim is not in force":   {claim: "gamma", by: "gamma", then: hideWeb, after: "Reserved On default/web"},
		"its tenant's claim is removed":        {claim: "gamma", by: "gamma", then: removeWeb, after: "Available Off"},
		"its tenant's claim is another's now": {claim: "gamma", by: "gamma", then: func(d *model.Desired) {
			d.Add(claim("web", of("beta")))
		}, after: "Reserved On default/web"},
	} {
		t.Run(name, func(t *testing.T) {
			owned(t, 1, func(w *loopWorld) {
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
	owned(t, 1, func(w *loopWorld) {
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
			owned(t, 1, func(w *loopWorld) {
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
		"another's BMC":    {change: func(d *model.Desired) { d.BMCs["bmc00"].Tenant = "beta" }, want: model.ReasonSecretMissing},
		"another's secret": {change: func(d *model.Desired) { d.BMCSecrets["s"].Tenant = "gamma" }, want: model.ReasonSecretMissing},
		"a BMC in other networks": {
			change: func(d *model.Desired) { d.BMCs["bmc00"].Spec.Access.IP = "198.51.100.1" },
			want:   model.ReasonAddressNotAllowed,
		},
		"its own": {change: func(*model.Desired) {}, want: model.ReasonPending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, 1)
			w.tenants = fleettest.Tenants
			w.desired.BMCs["bmc00"].Tenant, w.desired.BMCSecrets["s"].Tenant = "ops", "ops"
			c.change(w.desired)
			r := plan.Plan(&world.Input{Now: time.Now(), Desired: w.desired, Observed: w.observed, Policy: w.policy()})
			got := r.BMCs[0].Why
			if got.Reason != c.want || c.want != model.ReasonPending && !strings.Contains(got.Message, "git.tenants") {
				t.Errorf("got %+v", got)
			}
			m := r.Readings["bmc00"]
			if given := m != nil && !m.Target.Password.IsZero(); given != (c.want == model.ReasonPending) {
				t.Errorf("the password is handed out: %t, to %+v", given, m)
			}
		})
	}
}

func TestTenantsThatAskForTheSameAreToldApart(t *testing.T) {
	owned(t, 3, func(w *loopWorld) {
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

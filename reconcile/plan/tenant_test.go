package plan_test

import (
	"slices"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
)

// Two servers may have claims of one name: one is being released, one is the heir's.
func TestEachServersRemovalIsNoted(t *testing.T) {
	web := model.ClaimName("default/web")
	removedBy := func(tenant string) model.RemovedObject {
		return model.RemovedObject{Identity: web.Identity(), Removal: model.Removal{Revision: "r", Tenant: tenant}}
	}
	rec := func(name model.ServerName, tenant string) *record {
		return &record{RecordIdentity: model.RecordIdentity{Name: name}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: web, Tenant: tenant}}
	}
	observed := model.NewObserved()
	observed.Servers = map[model.ServerName]*record{"s1": rec("s1", "beta"), "s2": rec("s2", "gamma"), "s3": rec("s3", "alpha")}
	observed.Fleet.Removed = []model.RemovedObject{removedBy("beta")}
	d := model.NewDesired()
	d.Removed = map[model.Identity][]model.Removal{web.Identity(): {removedBy("gamma").Removal}}
	in := &input{Now: fleettest.Now, Desired: d, Observed: observed, Policy: policy.Default()}
	in.Policy.Tenants = fleettest.Tenants
	for name, want := range map[model.ServerName]bool{"s1": true, "s2": true, "s3": false} {
		if got := stepOf(in, name).After.Release != nil; got != want {
			t.Errorf("%s is released: %t", name, got)
		}
	}
	noted := []model.RemovedObject{removedBy("beta"), removedBy("gamma")}
	if f := plan.Plan(in).Decided.Fleet; f == nil || !slices.Equal(f.Removed, noted) {
		t.Errorf("noted %+v, want %+v", f, noted)
	}
}

func TestAServerThatIsGivenUpStaysItsTenants(t *testing.T) {
	const reserved, released = model.StateReserved, model.StateReleased
	release := &model.Release{Claim: "default/web"}
	for name, c := range map[string]struct {
		state   model.ServerState
		tenant  string // whose the server is
		release *model.Release
		claim   string // whose the claim is
		want    bool
	}{
		"in use":                            {state: reserved, tenant: "beta", claim: "gamma"},
		"being released":                    {state: reserved, tenant: "beta", release: release, claim: "gamma", want: true},
		"Released":                          {state: released, tenant: "beta", claim: "gamma", want: true},
		"Released, and the claim is back":   {state: released, tenant: "beta", release: release, claim: "beta"},
		"Released by a record of before":    {state: released, claim: "gamma"},
		"Released, and no tenants any more": {state: released, tenant: "beta"},
	} {
		t.Run(name, func(t *testing.T) {
			in := behind(nil)
			in.Observed.Servers["s"] = &record{
				RecordIdentity: model.RecordIdentity{Name: "s"}, Life: model.RecordLife{State: c.state},
				Claim: model.RecordClaim{Name: "default/web", Tenant: c.tenant}, Release: c.release,
			}
			in.Desired.Add(claim("web", fleettest.OfTenant(c.claim)))
			if got := stepOf(in, "s").Claim == nil; got != c.want {
				t.Errorf("the claim of its name is another tenant's: %t", got)
			}
		})
	}
}

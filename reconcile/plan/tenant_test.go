package plan

import (
	"slices"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

// Two servers may have claims of one name: one is being released, one is the heir's.
func TestEachServersRemovalIsNoted(t *testing.T) {
	web := model.ClaimName("default/web")
	removedBy := func(tenant string) model.RemovedObject {
		return model.RemovedObject{Identity: web.Identity(), Removal: model.Removal{Revision: "r", Tenant: tenant}}
	}
	rec := func(name model.ServerName, tenant string) *model.ServerRecord {
		return &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: name}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: web, Tenant: tenant}}
	}
	observed := model.NewObserved()
	observed.Servers = map[model.ServerName]*model.ServerRecord{"s1": rec("s1", "beta"), "s2": rec("s2", "gamma"), "s3": rec("s3", "alpha")}
	observed.Fleet.Removed = []model.RemovedObject{removedBy("beta")}
	d := model.NewDesired()
	d.Removed = map[model.Identity][]model.Removal{web.Identity(): {removedBy("gamma").Removal}}
	f := newFleet(&Input{Now: time.Now(), Desired: d, Observed: observed, Policy: proposal.Policy{Tenants: fleettest.Tenants}})
	for name, want := range map[model.ServerName]string{"s1": proposal.StepRelease, "s2": proposal.StepRelease, "s3": ""} {
		if got := f.server(name).endAsked(); got != want {
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
		"in use": {rec: model.ServerRecord{Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Tenant: "beta"}}, claim: "gamma"},
		"being released": {
			rec:   model.ServerRecord{Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Tenant: "beta"}, Release: release},
			claim: "gamma",
			want:  true,
		},
		"Released": {
			rec:   model.ServerRecord{Life: model.RecordLife{State: model.StateReleased}, Claim: model.RecordClaim{Tenant: "beta"}},
			claim: "gamma",
			want:  true,
		},
		"Released, and the claim is back": {
			rec:   model.ServerRecord{Life: model.RecordLife{State: model.StateReleased}, Claim: model.RecordClaim{Tenant: "beta"}, Release: release},
			claim: "beta",
		},
		"Released by a record of before":    {rec: model.ServerRecord{Life: model.RecordLife{State: model.StateReleased}}, claim: "gamma"},
		"Released, and no tenants any more": {rec: model.ServerRecord{Life: model.RecordLife{State: model.StateReleased}, Claim: model.RecordClaim{Tenant: "beta"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.rec.Claim.Name = "default/web"
			f := &fleet{in: &Input{Desired: model.NewDesired(), Observed: model.NewObserved()}}
			if got := f.otherTenants(&c.rec, claim("web", fleettest.OfTenant(c.claim))); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestABMCThatWasFoundUsesSecretsOfWhoMayDefineIt(t *testing.T) {
	d := model.NewDesired()
	f := &fleet{in: &Input{Desired: d, Policy: proposal.Policy{Tenants: fleettest.Tenants}}}
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

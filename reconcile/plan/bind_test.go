package plan_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// TestUnboundClaim has a claim and a server that cannot be bound to it yet.
func TestUnboundClaim(t *testing.T) {
	const operator = string(proposal.RackOperator)
	state := func(s model.ServerState) func(*input) {
		return func(in *input) { fleettest.ChangeRecord(in.Observed, 0, func(r *record) { r.Life.State = s }) }
	}
	manifest := func(s model.ServerSpec) func(*input) {
		return func(in *input) { fleettest.AddManifest(in.Desired, 0, s) }
	}
	name := fleettest.ServerName(0)
	silent := func(in *input) { in.Readings[name] = reading.State{Failures: 1} }
	tests := map[string]struct {
		want, actor string
		changes     []func(*input)
	}{
		"in discovery":                {"Discovery", "", []func(*input){state(model.StateDiscovery)}},
		"before its discovery":        {"Initial", "", []func(*input){state(model.StateInitial)}},
		"while it is wiped":           {"Cleanup", "", []func(*input){state(model.StateCleanup)}},
		"in discovery and cordoned":   {"Discovery", operator, []func(*input){state(model.StateDiscovery), manifest(model.ServerSpec{Unclaimable: true})}},
		"in discovery, not reachable": {"Discovery", operator, []func(*input){state(model.StateDiscovery), silent}},
		"cordoned":                    {"cordoned", operator, []func(*input){manifest(model.ServerSpec{Unclaimable: true})}},
		"not reachable":               {"out of reach", operator, []func(*input){silent}},
		"not off yet (C12)":           {"not yet powered off", operator, []func(*input){func(in *input) { in.Observed.ServerFacts[name].Power = model.PowerOn }}},
		"with a faulty manifest": {"without a manifest that can be read", operator, []func(*input){func(in *input) {
			in.Desired.Quarantined[name.Identity()] = []string{""}
		}}},
		"before a maintenance": {"about to enter Maintenance", operator, []func(*input){func(in *input) {
			in.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(name)}}})
		}}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			in := waiting(bigFleet(1, 0), 1, nil)
			in.Policy.DiscoveryImage = "registry.example.com/probe:1"
			for _, change := range tt.changes {
				change(in)
			}
			want := proposal.Why{Reason: model.ReasonNoServerFree, Message: "1 server: 1 " + tt.want, Actor: proposal.Actor(tt.actor)}
			if got := claimWhy(in, "default/w00000"); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestMaintenanceOfUnknownServer(t *testing.T) {
	const unknown = "server rack-7 is not known"
	for title, tt := range map[string]struct {
		change func(*input)
		want   string // the warning
	}{
		"all BMCs were read":  {func(*input) {}, unknown},
		"a BMC was not asked": {func(in *input) { delete(in.Observed.BMCFacts, "bmc00001") }, ""},
		"a BMC never answered": {func(in *input) {
			delete(in.Observed.BMCFacts, "bmc00001")
			in.Observed.BMCs["bmc00001"] = &model.BMCRecord{Name: "bmc00001", BMCScratch: model.BMCScratch{Reason: model.ReasonConnectionFailed}}
		}, unknown + "; 1 BMC could not be read yet"},
		"the record of the server cannot be read": {func(in *input) { in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "rack-7"}} }, ""},
	} {
		in := bigFleet(2, 0)
		m := &model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "rack-7"}}}
		m.References = []model.Reference{{To: model.ServerName("rack-7").Identity()}}
		in.Desired.Add(m)
		tt.change(in)
		r, got := plan.Plan(in), ""
		for _, p := range r.Unmatched {
			got += p.Message
		}
		if got != tt.want || r.Maintenances[0].Unknown != unknown {
			t.Errorf("%s: warning %q, want %q; the maintenance says %q", title, got, tt.want, r.Maintenances[0].Unknown)
		}
	}
}

func TestUnservedArchitectureGetsNoClaim(t *testing.T) {
	in := waiting(bigFleet(2, 0), 1, nil)
	in.Policy.Architectures = []string{"amd64"}
	in.Observed.ServerFacts["bmc00000-system-0"].Inventory = &model.Inventory{Processors: []model.Processor{{InstructionSet: "ARM-A64"}}}
	moves := plan.Plan(in).Moves
	if m := moves["bmc00001-system-0"]; m == nil || m.Then.Claim.Name != "default/w00000" || moves["bmc00000-system-0"] != nil {
		t.Errorf("the moves are %+v, want the claim on the server of its architecture", moves)
	}
}

package plan

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

// asking is a fleet of one bound server that Git asks for all that the guard looks at.
func asking(edit func(in *Input, rec *model.ServerRecord, c *model.ServerClaim)) *Input {
	in := &Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: fleettest.Now, Policy: proposal.DefaultPolicy()}
	c := claim("web")
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: "s1"},
		Life:           model.RecordLife{State: model.StateReserved},
		Claim:          model.RecordClaim{Name: c.ClaimName(), Power: model.PowerOn, BoundAt: fleettest.Now},
		Install:        model.RecordInstall{Digest: "digest"},
	}
	in.Observed.Servers[rec.Name] = rec
	in.Desired.Add(c)
	edit(in, rec, c)
	return in
}

func TestWhatTheGuardIsAskedFor(t *testing.T) {
	tests := map[string]struct {
		edit func(in *Input, rec *model.ServerRecord, c *model.ServerClaim)
		want string
	}{
		"nothing": {func(*Input, *model.ServerRecord, *model.ServerClaim) {}, ""},
		"a claim that wants its server off": {func(_ *Input, _ *model.ServerRecord, c *model.ServerClaim) {
			c.Spec.Power = model.PowerOff
		}, "power-off default/web=Off"},
		"a claim that wanted its server off before": {func(_ *Input, r *model.ServerRecord, c *model.ServerClaim) {
			c.Spec.Power, r.Claim.Power = model.PowerOff, model.PowerOff
		}, ""},
		"a server in maintenance is off anyway": {func(_ *Input, r *model.ServerRecord, c *model.ServerClaim) {
			c.Spec.Power, r.Life.State, r.Life.Back = model.PowerOff, model.StateMaintenance, model.StateReserved
		}, ""},
		"a new value of the reprovision annotation": {func(_ *Input, _ *model.ServerRecord, c *model.ServerClaim) {
			c.Annotations = map[string]string{model.AnnotationReprovision: "1"}
		}, "reprovision default/web=1"},
		"a server with nothing on it loses nothing": {func(_ *Input, r *model.ServerRecord, c *model.ServerClaim) {
			c.Annotations, r.Install.Digest = map[string]string{model.AnnotationReprovision: "1"}, ""
		}, ""},
		"a server that may be installed may lose something": {func(_ *Input, r *model.ServerRecord, c *model.ServerClaim) {
			c.Annotations, r.Install.Digest = map[string]string{model.AnnotationReprovision: "1"}, ""
			r.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Since: time.Unix(1, 0)}
		}, "reprovision default/web=1"},
		"one whose release is decided is asked for nothing": {func(_ *Input, r *model.ServerRecord, c *model.ServerClaim) {
			c.Spec.Power, r.Release = model.PowerOff, &model.Release{}
		}, ""},
		"a maintenance": {func(in *Input, _ *model.ServerRecord, _ *model.ServerClaim) {
			in.Desired.Add(&model.ServerMaintenance{
				Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "s1"}},
			})
		}, "maintenance default/web=m"},
		"a maintenance that is decided": {func(in *Input, r *model.ServerRecord, _ *model.ServerClaim) {
			in.Desired.Add(&model.ServerMaintenance{
				Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "s1"}},
			})
			r.Intent = &model.Intent{Kind: model.IntentMaintenance, Value: "m"}
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stepNames(newFleet(asking(tc.edit)).disruptions()); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Who approved that a claim is gone approved its release too, and nothing else.
func TestTheGuardLetsAnApprovedRemovalPass(t *testing.T) {
	for name, tc := range map[string]struct {
		approved bool
		state    model.ServerState
		want     bool
	}{
		"a removal that a person approved":     {true, model.StateReserved, true},
		"a removal by a commit":                {false, model.StateReserved, false},
		"a server in maintenance waits for it": {true, model.StateMaintenance, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(func(in *Input, r *model.ServerRecord, c *model.ServerClaim) {
				delete(in.Desired.Claims, c.ClaimName())
				in.Desired.Removed = map[model.Identity][]model.Removal{c.ClaimName().Identity(): {{Revision: "r", Approved: tc.approved}}}
				r.Life.State, r.Life.Back = tc.state, model.StateReserved
				in.Policy.MaxDisruptions, in.Policy.MaxPowerDisruptions = 0, 0
				in.Observed.Fleet.Holds = []model.GuardHold{{
					Token: "t",
					Steps: []model.Disruption{{
						Action: proposal.StepRelease, Server: "s1", Claim: c.ClaimName(), Value: text.Time(fleettest.Now),
					}},
				}}
			})
			f := newFleet(in)
			f.guard()
			if got := f.server("s1").may(proposal.StepRelease); got != tc.want || (len(f.blockedByGuard["s1"]) > 0) == tc.want {
				t.Errorf("allowed are %v, held %v", f.allowed["s1"], f.blockedByGuard["s1"])
			}
		})
	}
}

// No plan follows on a look that finds nothing new, so what this one says is shown until
// the next.
func TestTheGuardIsNamedWhileAServerIsToBeReadAsWell(t *testing.T) {
	for name, readAgo := range map[string]time.Duration{"read a moment ago": 0, "to be read": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(2, 2)
			in.Policy.MaxPowerDisruptions = 1
			for _, c := range in.Desired.Claims {
				c.Spec.Power = model.PowerOff
			}
			for server, r := range in.Readings {
				r.At = in.Now.Add(-readAgo)
				in.Readings[server] = r
			}
			r := Plan(in)
			s, looks := r.Servers[0], r.Moves[r.Servers[0].Name] != nil
			if s.Why.Reason != model.ReasonGuardHeld || looks != (readAgo > 0) {
				t.Errorf("it is %q, and is read now: %t", s.Why.Reason, looks)
			}
		})
	}
}

func stepNames(steps []model.Disruption) string {
	var all []string
	for _, d := range steps {
		all = append(all, strings.TrimSuffix(d.Action+" "+string(d.Claim)+"="+d.Value, "="))
	}
	return strings.Join(all, " ")
}

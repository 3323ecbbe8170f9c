package plan_test

import (
	"cmp"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// The reason of a failed reading is reported unchanged: a refused password asks for
// something else than a BMC that does not answer.
func TestWhyAReadingFailed(t *testing.T) {
	for reason, want := range map[string]struct{ server, bmc string }{
		"":                               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"ConnectionFailed":               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"UnknownError":                   {model.ReasonBMCUnreachable, "ConnectionFailed"},
		model.ReasonAuthenticationFailed: {model.ReasonAuthenticationFailed, model.ReasonAuthenticationFailed},
		model.ReasonCertificateChanged:   {model.ReasonCertificateChanged, model.ReasonCertificateChanged},
		model.ReasonHalfAnswer:           {model.ReasonHalfAnswer, model.ReasonHalfAnswer},
		model.ReasonIdentityMismatch:     {model.ReasonIdentityMismatch, ""},
		model.ReasonIdentityUnknown:      {model.ReasonIdentityUnknown, ""},
	} {
		in := bigFleet(1, 0)
		in.Readings[first] = reading.State{Failed: reading.Failed{Failures: 2, Reason: reason, NotBefore: in.Now.Add(time.Minute)}}
		r := plan.Plan(in)
		if got := r.Servers[0].Why.Reason; got != want.server {
			t.Errorf("%q: the server says %s, want %s", reason, got, want.server)
		}
		if got := r.BMCs[0].Why.Reason; got != want.bmc {
			t.Errorf("%q: the BMC says %q, want %q", reason, got, want.bmc)
		}
	}
}

// A BMC that was read a moment ago is read at once if it shows another machine since then, and otherwise
// as often as servers are.
func TestBMCThatShowsAnotherMachineIsReadAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		read time.Duration
		want bool
	}{"before that was seen": {read: -10 * time.Second, want: true}, "after that was seen": {}} {
		in := bigFleet(1, 0)
		bmc, server := model.BMCName(fleettest.BMCName(0)), fleettest.ServerName(0)
		in.BMCRead[bmc] = in.Now.Add(tt.read)
		in.Readings[server] = reading.State{Failed: reading.Failed{Failures: 1, Reason: model.ReasonIdentityMismatch, Since: in.Now.Add(-time.Second)}}
		r := plan.Plan(in)
		if got := r.Readings[bmc] != nil; got != tt.want || !got && r.Next.After(in.Now.Add(in.Policy.PollInterval)) {
			t.Errorf("read %s: read again now is %t, next plan in %s", name, got, r.Next.Sub(in.Now))
		}
	}
}

// A BMC that does not say whether its server is on needs a person, and is read at the interval of a
// server at rest.
func TestAPowerStateThatStaysUnknownNeedsAPerson(t *testing.T) {
	minute := policy.Default().PollInterval * 9 / 10
	for name, tt := range map[string]struct {
		power model.Power
		looks int
		actor proposal.Actor
		rests bool
	}{
		"not shown once":              {power: model.PowerUnknown, looks: reading.Unknown - 1, actor: proposal.ActorNone},
		"not shown for a while":       {power: model.PowerUnknown, looks: reading.Unknown, actor: proposal.RackOperator, rests: true},
		"between the two for a while": {power: model.PowerPoweringOff, looks: 9, actor: proposal.ActorNone},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 0)
			var r reading.State
			for range tt.looks {
				r = r.Saw(tt.power, nil, &in.Policy, in.Now)
			}
			in.Readings[first], in.Observed.ServerFacts[first].Power = r, tt.power
			got := plan.Plan(in)
			if rests := !got.Next.Before(in.Now.Add(minute)); got.Servers[0].Why.Actor != tt.actor || rests != tt.rests {
				t.Errorf("it waits until %s for %+v", got.Next, got.Servers[0].Why)
			}
		})
	}
}

func TestAServerWhoseUUIDAnotherMachineHasToo(t *testing.T) {
	const name = "bmc00000-system-0"
	withTwin := func(in *input, _ *record) {
		fleettest.AddDuplicate(in.Desired, in.Observed, 0)
		in.BMCRead["twin"] = in.Now
	}
	inState := func(s model.ServerState) change {
		return func(in *input, rec *record) {
			rec.Life.State, rec.Claim.Name, rec.Install.Digest = s, "", ""
			in.Desired.Claims = map[model.ClaimName]*model.ServerClaim{}
			in.Policy.DiscoveryImage = "probe:1"
		}
	}
	claimed := ticket(model.PurposeClaim)
	ended := func(_ *input, rec *record) { rec.Boot.Ticket.Ended = model.TicketSpent }
	waits := func(in *input, _ *record) { waiting(in, 1, nil) }
	type changes []change
	const duplicate, spent = model.ReasonDuplicateUUID, model.TicketSpent
	for test, tc := range map[string]struct {
		change changes
		do     string            // what is done to it
		ended  model.TicketState // its ticket, afterwards
		why    string            // what it waits for
		state  model.ServerState // afterwards, if that is another
	}{
		"is bound to no claim":                  {change: changes{inState(model.StateAvailable), off, waits, withTwin}, why: duplicate},
		"is bound to one without a twin":        {change: changes{inState(model.StateAvailable), off, waits}, state: model.StateReserved},
		"is not armed for discovery":            {change: changes{inState(model.StateInitial), off, withTwin}, why: duplicate},
		"is not armed for its claim":            {change: changes{off, claimed, ended, withTwin}, why: duplicate, ended: spent},
		"is not armed for a wipe":               {change: changes{inState(model.StateCleanup), off, withTwin}, why: duplicate},
		"loses the ticket of its discovery":     {change: changes{inState(model.StateDiscovery), ticket(model.PurposeDiscovery), withTwin}, ended: spent},
		"loses the ticket of its claim":         {change: changes{claimed, withTwin}, ended: spent},
		"loses one that waits for it to be off": {change: changes{claimed, awaitingOff, withTwin}, ended: spent},
		"loses one whose script was served":     {change: changes{claimed, progressed(model.Progress{ScriptAt: fleettest.Now}), withTwin}, ended: spent},
		"loses the ticket of a wipe":            {change: changes{inState(model.StateCleanup), ticket(model.PurposeCleanup), withTwin}, ended: spent},
		"loses it though its BMC is silent": {change: changes{claimed, withTwin, func(in *input, _ *record) {
			in.Readings[name] = reading.State{Failed: reading.Failed{Failures: 3, NotBefore: in.Now.Add(time.Hour)}}
		}}, ended: spent},
		"keeps one whose Ignition was served":   {change: changes{claimed, served(0), fetched, withTwin}, why: model.ReasonWaitingForBoot},
		"keeps all while nothing is acted upon": {change: changes{claimed, withTwin, outdated}, why: model.ReasonRevisionOutdated},
		"is healed from its disk all the same":  {change: changes{off, withTwin}, do: "set one-time boot from disk, then ask for power On"},
		"is not reprovisioned": {change: changes{withTwin, func(in *input, rec *record) {
			rec.Install.Reprovision, rec.Requests.HandledReprovision = "1", "1"
			c := in.Desired.Claims[rec.Claim.Name]
			c.Spec.Image, c.Annotations = "os:2", map[string]string{model.AnnotationReprovision: "1"}
		}}, why: duplicate},
		"is not taken over with a claim": {change: changes{inState(model.StateInitial), waits, withTwin, func(in *input, _ *record) {
			in.Desired.Add(&model.Server{
				Meta: model.Meta{Name: name}, Spec: model.ServerSpec{ServerClaimRef: &model.ObjectRef{Namespace: "default", Name: "w00000"}},
			})
		}}, why: duplicate},
		"is none while its own BMC was never heard": {change: changes{claimed, withTwin,
			func(in *input, rec *record) { in.Observed.BMCFacts[rec.BMC] = nil }}, why: "Pending"},
		"is none once its own BMC shows it no more": {change: changes{off, withTwin, func(in *input, rec *record) {
			in.Observed.BMCFacts[rec.BMC] = &model.BMCFacts{Name: rec.BMC}
		}}, do: "set one-time boot from disk, then ask for power On"}, // behind the other
		"is one of two servers on record": {change: changes{inState(model.StateAvailable), off, waits, func(in *input, rec *record) {
			other := *rec
			other.Name, other.BMC = "other", "gone"
			in.Observed.Servers["other"] = &other
		}}, why: duplicate},
		"is one of two machines behind a BMC": {change: changes{inState(model.StateAvailable), off, waits,
			func(in *input, rec *record) {
				f := *in.Observed.BMCFacts[rec.BMC]
				f.Systems = append(f.Systems, model.SystemFact{URI: "/2", UUID: rec.UUID})
				in.Observed.BMCFacts[rec.BMC] = &f
			}}, why: duplicate},
	} {
		t.Run(test, func(t *testing.T) {
			in, rec := serving(tc.change...)
			state := cmp.Or(tc.state, rec.Life.State)
			st := stepOf(in, name)
			if got := st.After.Boot.Ticket; got != nil && got.Ended != tc.ended {
				t.Errorf("its ticket is %q, want %q", got.Ended, tc.ended)
			}
			if st.Why.Reason != tc.why {
				t.Errorf("it waits for %+v, want %q", st.Why, tc.why)
			}
			if got := st.does(); got != tc.do {
				t.Errorf("done is %q, want %q", got, tc.do)
			}
			if got := st.After.Life.State; got != state {
				t.Errorf("it is %s, want %s", got, state)
			}
		})
	}
}

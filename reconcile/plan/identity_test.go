package plan_test

import (
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
	tests := map[string]struct{ server, bmc string }{
		"":                               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"ConnectionFailed":               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"UnknownError":                   {model.ReasonBMCUnreachable, "ConnectionFailed"},
		model.ReasonAuthenticationFailed: {model.ReasonAuthenticationFailed, model.ReasonAuthenticationFailed},
		model.ReasonCertificateChanged:   {model.ReasonCertificateChanged, model.ReasonCertificateChanged},
		model.ReasonHalfAnswer:           {model.ReasonHalfAnswer, model.ReasonHalfAnswer},
		model.ReasonIdentityMismatch:     {model.ReasonIdentityMismatch, ""},
		model.ReasonIdentityUnknown:      {model.ReasonIdentityUnknown, ""},
	}
	for reason, want := range tests {
		in := bigFleet(1, 0)
		in.Readings[first] = reading.State{Failures: 2, Reason: reason, NotBefore: in.Now.Add(time.Minute)}
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
	}{
		"before that was seen": {read: -10 * time.Second, want: true},
		"after that was seen":  {},
	} {
		in := bigFleet(1, 0)
		bmc, server := model.BMCName(fleettest.BMCName(0)), fleettest.ServerName(0)
		in.BMCRead[bmc] = in.Now.Add(tt.read)
		in.Readings[server] = reading.State{Failures: 1, Reason: model.ReasonIdentityMismatch, Since: in.Now.Add(-time.Second)}
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
				r = r.Saw(tt.power, nil, 3, in.Now)
			}
			in.Readings[first], in.Observed.ServerFacts[first].Power = r, tt.power
			got := plan.Plan(in)
			if rests := !got.Next.Before(in.Now.Add(minute)); got.Servers[0].Why.Actor != tt.actor || rests != tt.rests {
				t.Errorf("it waits until %s for %+v", got.Next, got.Servers[0].Why)
			}
		})
	}
}

// A BMC is reached as its manifest says.
func TestABMCIsReachedAsGitSays(t *testing.T) {
	in := lostPower(1)
	for _, b := range in.Desired.BMCs {
		b.Annotations = map[string]string{model.AnnotationTLSMinimum: "1.0"}
	}
	moves := plan.Plan(in).Moves
	if len(moves) != 1 {
		t.Fatalf("%d moves, want 1", len(moves))
	}
	for name, m := range moves {
		if got := m.Target.BMC.TLSMinimum; got != "1.0" {
			t.Errorf("%s: the lowest version of TLS is %q, want 1.0", name, got)
		}
	}
}

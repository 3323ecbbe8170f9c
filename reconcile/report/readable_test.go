package report

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// What runs on a server goes on while its BMC cannot be read: its claim stays Booted.
func TestAClaimIsBootedWhileItsBMCCannotBeRead(t *testing.T) {
	type change = func(in *world.Input, rec *model.ServerRecord)
	failing := func(reason string) change {
		return func(in *world.Input, rec *model.ServerRecord) {
			in.Readings[rec.Name] = reading.State{
				At: in.Now, Failed: reading.Failed{Failures: 3, Err: "no answer", Reason: reason, NotBefore: in.Now.Add(time.Minute)},
			}
		}
	}
	bmcSays := func(reason string) change {
		return func(in *world.Input, rec *model.ServerRecord) {
			b := *in.Observed.BMCs[rec.BMC]
			b.Reason, b.LastError, b.NotBefore = reason, "no", in.Now.Add(time.Minute)
			in.Observed.BMCs[rec.BMC] = &b
		}
	}
	for name, tc := range map[string]struct {
		changes []change
		booted  bool
	}{
		"no answer":                       {changes: []change{failing("")}, booted: true},
		"a password that is refused":      {changes: []change{failing(model.ReasonAuthenticationFailed)}, booted: true},
		"another certificate":             {changes: []change{failing(model.ReasonCertificateChanged)}, booted: true},
		"half an answer":                  {changes: []change{failing(model.ReasonHalfAnswer)}, booted: true},
		"a BMC that was not read":         {changes: []change{bmcSays("ConnectionFailed")}, booted: true},
		"not another machine":             {changes: []change{failing(model.ReasonIdentityMismatch)}},
		"not one that nothing says it is": {changes: []change{failing(model.ReasonIdentityUnknown)}},
		"not one that was off": {changes: []change{failing(""), func(in *world.Input, rec *model.ServerRecord) {
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
		}}},
		"not one that is Unconfirmed": {changes: []change{failing(""), func(in *world.Input, rec *model.ServerRecord) {
			rec.Install.Unconfirmed = in.Now
		}}},
		"not one that is not installed": {
			changes: []change{failing(""), func(_ *world.Input, rec *model.ServerRecord) { rec.Install.Digest = "" }},
		},
		"not one that Git has left alone": {changes: []change{func(in *world.Input, rec *model.ServerRecord) {
			in.Desired.BMCs[rec.BMC].Annotations = map[string]string{model.AnnotationOperation: model.OperationIgnore}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
			rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
			for _, c := range tc.changes {
				c(in, rec)
			}
			conds := claimConditionsOf(in, rec.Claim.Name)
			ready, unread := fleettest.ConditionOf(conds, "Ready"), fleettest.ConditionOf(conds, model.ConditionBMCReadable)
			if got := strings.HasPrefix(ready, "True Booted"); got != tc.booted || got != strings.HasPrefix(unread, "False ") {
				t.Errorf("Ready is %q and %s %q, want Booted: %t", ready, model.ConditionBMCReadable, unread, tc.booted)
			}
		})
	}
}

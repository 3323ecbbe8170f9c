package world

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// unknownFleet says why a claim of the very first revision waits: nothing is known of
// the fleet, though some of its servers run, and perhaps for it.
func (f *World) unknownFleet(name model.ClaimName) proposal.Why {
	if f.Record.UnknownToken == "" || f.ClaimRecord(name).Sequence > 1 {
		return proposal.Why{}
	}
	if f.unknown == nil {
		f.unknown = new(f.unknownWhy())
	}
	return *f.unknown
}

// unknownWhy is what the claims of the very first revision wait for.
func (f *World) unknownWhy() proposal.Why {
	why := proposal.Why{Reason: model.ReasonFleetUnknown, Since: f.Record.Unknown, Actor: proposal.RackOperator}
	for _, b := range f.BMCs.BMCs {
		if b.Target.Address != "" && b.Facts == nil && b.Record.Reason == "" {
			why.Message, why.Actor = "waiting for every BMC to show its servers, for nothing is known of the fleet yet; "+
				"next "+string(b.Name), proposal.ActorNone
			return why
		}
	}
	for _, s := range f.Servers {
		if life.MayServe(s.Server) {
			why.Message = fmt.Sprintf("neither the store nor the status branch knows the fleet, and server %s was found running: it may "+
				"serve this claim already. Adopt it by spec.serverClaimRef, or make a commit whose message ends with %s", s.Name,
				proposal.ApproveLine(f.Record.UnknownToken))
			return why
		}
	}
	return proposal.Why{}
}

// noteUnknown has the claims of the very first revision wait for the servers that may serve them
// already, until all were seen and none ran, or a commit approves them.
func (f *World) noteUnknown() {
	switch {
	case f.ObserveOnly.Reason != "":
	case f.Record.Applied.IsZero() && f.Record.UnknownToken == "" && len(f.In.Desired.Claims) > 0:
		f.Record.Unknown, f.Record.UnknownToken = f.In.Now, proposal.Token(f.In.Nonce, "fleet", proposal.TokenLength)
	case f.Record.UnknownToken == "":
	case slices.Contains(f.In.Desired.Approvals, f.Record.UnknownToken), !f.Record.Applied.IsZero() && f.allOff():
		f.Record.Unknown, f.Record.UnknownToken = time.Time{}, ""
	}
}

// allOff reports whether every BMC has shown its servers, and none was found running.
func (f *World) allOff() bool {
	for _, b := range f.BMCs.BMCs {
		if b.Facts == nil {
			return false
		}
	}
	for _, s := range f.Servers {
		if life.MayServe(s.Server) || s.Record.Life.State == model.StateInitial && s.Power() != model.PowerOff && !s.Opened(model.PurposeDiscovery) {
			return false
		}
	}
	return len(f.Servers) > 0
}

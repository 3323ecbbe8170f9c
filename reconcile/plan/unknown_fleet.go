package plan

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// unknownFleet says why a claim of the very first revision waits: nothing is known of
// the fleet, though some of its servers run, and perhaps for it.
func (f *fleet) unknownFleet(name model.ClaimName) proposal.Why {
	if f.record.UnknownToken == "" || f.claimRecord(name).Sequence > 1 {
		return proposal.Why{}
	}
	if f.unknown == nil {
		f.unknown = new(f.unknownWhy())
	}
	return *f.unknown
}

// unknownWhy is what the claims of the very first revision wait for.
func (f *fleet) unknownWhy() proposal.Why {
	why := proposal.Why{Reason: model.ReasonFleetUnknown, Since: f.record.Unknown, Actor: proposal.RackOperator}
	for _, b := range f.bmcs {
		if b.target.Address != "" && b.facts == nil && b.rec.Reason == "" {
			why.Message, why.Actor = "waiting for every BMC to show its servers, for nothing is known of the fleet yet; "+
				"next "+string(b.name), proposal.ActorNone
			return why
		}
	}
	for _, s := range f.servers {
		if s.mayServe() {
			why.Message = fmt.Sprintf("neither the store nor the status branch knows the fleet, and server %s was found running: it may "+
				"serve this claim already. Adopt it by spec.serverClaimRef, or make a commit whose message ends with %s", s.name,
				proposal.ApproveLine(f.record.UnknownToken))
			return why
		}
	}
	return proposal.Why{}
}

// mayServe reports whether a server of an unknown fleet may serve a claim: it runs what
// Ingot did not start, or did when it was found. That it is off since then tells nothing, for
// its power may have been cut: nobody has it until that was approved, or Git asks for it.
func (s *server) mayServe() bool {
	return !s.rec.Life.FoundRunning.IsZero() || s.rec.Life.State == model.StateInitial && s.power() == model.PowerOn && !s.opened(model.PurposeDiscovery)
}

// keptForClaims reports whether a server that was found running is left alone though it is
// off, because nothing is known of the fleet.
func (s *server) keptForClaims() bool {
	return s.fleet.record.UnknownToken != "" && !s.rec.Life.FoundRunning.IsZero() && !s.discoverAsked()
}

// noteUnknown has the claims of the first revision of all wait for the servers that
// may serve them already, until all were seen and none ran, or somebody approves.
func (f *fleet) noteUnknown() {
	switch {
	case f.observeOnly.Reason != "":
	case f.record.Applied.IsZero() && f.record.UnknownToken == "" && len(f.in.Desired.Claims) > 0:
		f.record.Unknown, f.record.UnknownToken = f.in.Now, proposal.Token(f.in.Nonce, "fleet", proposal.TokenLength)
	case f.record.UnknownToken == "":
	case slices.Contains(f.in.Desired.Approvals, f.record.UnknownToken), !f.record.Applied.IsZero() && f.allOff():
		f.record.Unknown, f.record.UnknownToken = time.Time{}, ""
	}
}

// allOff reports whether every BMC has shown its servers, and none was found running.
func (f *fleet) allOff() bool {
	for _, b := range f.bmcs {
		if b.facts == nil {
			return false
		}
	}
	for _, s := range f.servers {
		if s.mayServe() || s.rec.Life.State == model.StateInitial && s.power() != model.PowerOff && !s.opened(model.PurposeDiscovery) {
			return false
		}
	}
	return len(f.servers) > 0
}

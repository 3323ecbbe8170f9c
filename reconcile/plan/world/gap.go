package world

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// noteGap has a token for the servers that were found running after a gap, while there are any.
func (f *World) noteGap() {
	for _, s := range f.Servers {
		switch {
		case life.FoundInGap(s.Server) && (f.gapFound == nil || s.Record.Life.FoundRunning.After(f.gapFound.Record.Life.FoundRunning)):
			f.gapFound = s
		case f.In.LongGap && life.ShouldBeOff(s.Server) && !life.FoundInGap(s.Server) && !s.Reading.WasOff && s.Reading.Failures == 0:
			f.gapUnread = s
		}
	}
	switch {
	case f.ObserveOnly.Reason != "":
	case f.gapFound != nil && f.Record.GapToken == "":
		f.Record.GapToken = proposal.Token(f.In.Nonce, "gap", proposal.TokenLength)
	case f.gapFound == nil:
		f.Record.GapToken = ""
	}
}

// boundInGap returns why a claim waits that may have been bound by a decision that was lost: a server
// that should be off runs, or may run.
func (f *World) boundInGap(name model.ClaimName) proposal.Why {
	held := slices.IndexFunc(f.Record.Holds, func(h model.GuardHold) bool { return h.Gap })
	if f.gapFound == nil && f.gapUnread == nil && held < 0 {
		return proposal.Why{}
	}
	rec := f.ClaimRecord(name)
	if held >= 0 && !rec.FirstSeen.After(f.Record.Holds[held].Since) {
		h := f.Record.Holds[held]
		return proposal.Why{Reason: model.ReasonGuardHeld, Message: fmt.Sprintf("%s; one of them may serve this claim: approve the list by a commit whose message ends with %s, or take it back",
			"no Ingot had run for long, and steps on servers that run wait for an approval", proposal.ApproveLine(h.Token)), Since: h.Since, Actor: proposal.RackOperator}
	}
	if s := f.gapFound; s != nil && !rec.FirstSeen.After(s.Record.Life.FoundRunning) {
		return proposal.Why{Reason: model.ReasonFoundRunning, Message: fmt.Sprintf("server %s was found running after no Ingot had run for long, and may serve this claim: "+
			"see what it runs, then make a commit whose message ends with %s", s.Name, proposal.ApproveLine(f.Record.GapToken)), Since: s.Record.Life.FoundRunning, Actor: proposal.RackOperator}
	}
	if s := f.gapUnread; s != nil && (rec.FirstRevision == f.In.First || rec.FirstSeen.Before(f.In.Started)) {
		return proposal.Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("waiting until server %s shows whether it runs: it may serve this claim", s.Name), Since: f.In.Started, Actor: proposal.ActorNone}
	}
	return proposal.Why{}
}

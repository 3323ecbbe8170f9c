package world

import (
	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// Server is one server while the fleet is put together.
type Server struct {
	World   *World
	Name    model.ServerName
	Spec    *model.Server // Rec Git says of it; nil when nothing
	Rec     *model.ServerRecord
	stored  *model.ServerRecord // as the input has it; nil = it has none
	facts   *model.ServerFacts
	Bmc     *bmcs.BMC // Reading its record names; nil = it is not known
	Reading *reading.State
	Claim   *model.ServerClaim // Blocked claim it is bound to, if Git still holds it
	// blocked says why the server cannot be reached or must not be; "" = it can.
	Blocked proposal.Why
	Taints  []proposal.RuleTaint // Bootstrapped ServerReadinessRules
	// bootstrapped are the rules that it is ready for, and that the record has to remember.
	Bootstrapped []string
	View         *proposal.Server
}

// Power is the power state that was read last.
func (s *Server) Power() model.Power { return s.facts.Power }

// see makes the server's view, once all of the fleet is known.
func (s *Server) see() {
	f := s.World
	*s.View = proposal.Server{
		Moment: f.Moment, Name: s.Name, Manifest: s.Spec, Record: s.Rec, Stored: s.stored, Facts: s.facts, Reading: s.Reading,
		Claim: s.Claim, Renamed: f.renamed[s.Name], Blocked: s.Blocked, Duplicate: s.duplicate(), Busy: f.In.Busy[s.Name],
		Shown: !f.In.Policy.ShowFirst || s.Rec.Intent == nil || f.In.Shown[s.Name] == *s.Rec.Intent,
	}
	if b := s.Bmc; b != nil {
		s.View.BMC = proposal.BMCView{Known: b.Facts != nil, ReadAt: f.In.BMCRead[s.Rec.BMC]}
		if b.Facts != nil {
			s.View.BMC.Firmware, s.View.BMC.LastReset = b.Facts.FirmwareVersion, b.Facts.LastResetTime
		}
		if life.BMCToConfirm(s.View) {
			b.Needs(bmcs.RereadNow)
		}
	}
	s.View.Contradicted = f.contradictedWhy(s)
	if c := s.adopter(); c != nil && f.Served[c.ClaimName()] == nil {
		s.View.Adopts = c
	}
}

// adopter is the claim that the server's manifest names in serverClaimRef.
func (s *Server) adopter() *model.ServerClaim {
	if s.Spec == nil || s.Spec.Spec.ServerClaimRef == nil {
		return nil
	}
	ref := s.Spec.Spec.ServerClaimRef
	return s.World.In.Desired.Claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)]
}

// newMoment is what all servers of the plan share.
func (f *World) newMoment() *proposal.Moment {
	in := f.In
	return &proposal.Moment{
		Now: in.Now, Started: in.Started, Serving: in.Serving, LongGap: in.LongGap, Policy: &in.Policy, Desired: in.Desired, Observed: in.Observed,
		DigestKey: in.DigestKey, Outrun: f.outrun, Aliases: f.Aliases,
		Conditions: make(map[model.ServerName][]proposal.RuleTaint), Unpushed: in.Policy.ShowFirst && in.Shown == nil, Unannounced: in.Unannounced,
	}
}

func (s *Server) whySince(reason, message string, a proposal.Actor) proposal.Why {
	return proposal.Why{Reason: reason, Message: message, Since: s.Rec.Life.Since, Actor: a}
}

// RanWhenLastRead reports whether the server was On when it was last read, and why is
// nothing but that it cannot be read now: what runs on it goes on without its BMC.
func (s *Server) RanWhenLastRead(why proposal.Why) bool {
	if s.Power() != model.PowerOn || why.Reason == "" {
		return false
	}
	if s.Blocked.Reason != "" {
		b := s.Bmc
		ofBMC := b != nil && why == b.Why && (why.Reason == b.Record.Reason || why.Reason == model.ReasonAuthenticationFailed)
		return why == s.Blocked && (why.Reason == model.ReasonSystemUnreadable || ofBMC)
	}
	return s.Reading.Failures > 0 && !s.Reading.Mistaken() && why == laws.Unreachable(s.View)
}

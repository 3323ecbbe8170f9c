package world

import (
	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// Server is what is known of one server, and what only the whole plan needs of it.
type Server struct {
	*proposal.Server
	World  *World
	Behind *bmcs.BMC            // the BMC that its record names; nil = it is not known
	Taints []proposal.RuleTaint // by ServerReadinessRules
	// Bootstrapped are the rules that it is ready for, and that the record has to remember.
	Bootstrapped []string
}

// see completes what is known of the server, once all of the fleet is.
func (s *Server) see() {
	f := s.World
	s.Renamed, s.Duplicate, s.Busy = f.renamed[s.Name], s.duplicate(), f.In.Busy[s.Name]
	s.Shown = !f.In.Policy.ShowFirst || s.Record.Intent == nil || f.In.Shown[s.Name] == *s.Record.Intent
	if b := s.Behind; b != nil {
		s.BMC = proposal.BMCView{Known: b.Facts != nil, ReadAt: f.In.BMCRead[s.Record.BMC], Console: b.Console()}
		if b.Facts != nil {
			s.BMC.Firmware, s.BMC.LastReset = b.Facts.FirmwareVersion, b.Facts.LastResetTime
		}
		if life.BMCToConfirm(s.Server) {
			b.Needs(bmcs.RereadNow)
		}
	}
	s.Contradicted = f.contradictedWhy(s)
	if c := s.adopter(); c != nil && f.Served[c.ClaimName()] == nil {
		s.Adopts = c
	}
}

// adopter is the claim that the server's manifest names in serverClaimRef.
func (s *Server) adopter() *model.ServerClaim {
	if s.Manifest == nil || s.Manifest.Spec.ServerClaimRef == nil {
		return nil
	}
	ref := s.Manifest.Spec.ServerClaimRef
	return s.Desired.Claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)]
}

// newMoment is what all servers of the plan share.
func (f *World) newMoment() *proposal.Moment {
	in := f.In
	return &proposal.Moment{
		Now: in.Now, Started: in.Started, Serving: in.Serving, LongGap: in.LongGap, Policy: &in.Policy, Desired: in.Desired, Observed: in.Observed,
		DigestKey: in.DigestKey, Outrun: make(map[model.ClaimName]bool), Aliases: make(map[string]model.ServerName),
		Conditions: make(map[model.ServerName][]proposal.RuleTaint), Unpushed: in.Policy.ShowFirst && in.Shown == nil, Unannounced: in.Unannounced,
	}
}

// RanWhenLastRead reports whether the server was On when it was last read, and why is
// nothing but that it cannot be read now: what runs on it goes on without its BMC.
func (s *Server) RanWhenLastRead(why proposal.Why) bool {
	if s.Power() != model.PowerOn || why.Reason == "" {
		return false
	}
	if s.Blocked.Reason != "" {
		b := s.Behind
		ofBMC := b != nil && why == b.Why && (why.Reason == b.Record.Reason || why.Reason == model.ReasonAuthenticationFailed)
		return why == s.Blocked && (why.Reason == model.ReasonSystemUnreadable || ofBMC)
	}
	return s.Reading.Failures > 0 && !s.Reading.Mistaken() && why == laws.Unreachable(s.Server)
}

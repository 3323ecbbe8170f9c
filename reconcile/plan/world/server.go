package world

import (
	"cmp"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// Server is what is known of one server, and what only the whole plan needs of it.
type Server struct {
	bind.View
	world  *World
	Behind *bmcs.BMC // the BMC that its record names; nil = it is not known
}

func (w *World) loadServers() {
	a := w.admit()
	names := sorted(a.recs)
	servers, views, readings := make([]Server, len(names)), make([]proposal.Server, len(names)), make([]reading.State, len(names))
	w.Servers, w.Served = make([]*Server, len(names)), make(map[model.ClaimName]*Server, len(names))
	for i, name := range names {
		rec, facts := a.recs[name], cmp.Or(w.Observed.ServerFacts[name], &model.ServerFacts{Name: name})
		readings[i] = w.In.Readings[name]
		views[i] = proposal.Server{
			Moment: w.Moment, Name: name, Manifest: a.specs[name], Record: rec, Stored: w.Observed.Servers[name], Facts: facts,
			Reading: &readings[i], Busy: w.In.Busy[name],
		}
		servers[i] = Server{View: bind.View{Server: &views[i]}, world: w, Behind: w.BMCs.Named(rec.BMC)}
		s, bmc := &servers[i], (*model.BMC)(nil)
		if s.Behind != nil {
			bmc = s.Behind.Manifest
		}
		s.Labels = model.ServerLabels(bmc, s.Manifest)
		w.loadClaim(s)
		w.Servers[i] = s
	}
	w.followRenames()
	for _, s := range w.Servers {
		s.complete(a)
	}
}

func (s *Server) complete(a *admission) {
	w := s.world
	s.Duplicate, s.Contradicted, s.Blocked = s.duplicate(a.duplicates[s.Name]), s.contradicted(a.otherUUID[s.Name]), s.blocked()
	s.Outdated = booting.Outdated(s.Server)
	s.Shown = !w.Policy.ShowFirst || s.Record.Intent == nil || w.In.Shown[s.Name] == *s.Record.Intent
	if b := s.Behind; b != nil {
		s.BMC = proposal.BMCView{Known: b.Facts != nil, ReadAt: b.ReadAt, Console: b.Console()}
		if b.Facts != nil {
			s.BMC.Firmware, s.BMC.LastReset = b.Facts.FirmwareVersion, b.Facts.LastResetTime
		}
		if life.BMCToConfirm(s.Server) {
			b.Needs(bmcs.RereadNow)
		}
	}
	if s.Manifest != nil && s.Manifest.Spec.ServerClaimRef != nil {
		ref := s.Manifest.Spec.ServerClaimRef
		if c := w.Desired.Claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)]; c != nil && w.Served[c.ClaimName()] == nil {
			s.Adopts = c
		}
	}
}

// isRefused reports whether the BMC refused the credentials that it accepted before, when the server was read last.
func (s *Server) isRefused() bool {
	return s.Reading.Failures > 0 && s.Reading.Reason == model.ReasonAuthenticationFailed && s.Behind.Target.Accepted.Here
}

func (s *Server) blocked() proposal.Why {
	b := s.Behind
	if name, _ := s.Requested(); name == model.OperationIgnore {
		return s.WhyBy(model.ReasonIgnored, "suspended by annotation "+model.AnnotationOperation+": ignore", proposal.RackOperator)
	}
	switch {
	case b == nil:
		return s.orphaned()
	case b.Why.Reason != "":
		return b.Why
	}
	as := bmcs.ShownAs(b.Facts, s.Record)
	if as != bmcs.ShownItself || s.Reading.Mistaken() {
		b.Needs(bmcs.RereadOften)
	}
	if (s.isRefused() || s.Reading.Mistaken()) && s.Reading.Since.After(b.ReadAt) {
		b.Needs(bmcs.RereadNow)
	}
	reason, message := "", ""
	switch as {
	case bmcs.ShownItself:
		return proposal.Why{}
	case bmcs.ShownNothing:
		reason, message = model.ReasonSystemMissing, "its BMC no longer shows system "+s.Record.SystemURI
	case bmcs.ShownUnread:
		reason, message = model.ReasonSystemUnreadable, "its BMC lists system "+s.Record.SystemURI+", and shows nothing of it that can be read"
	case bmcs.ShownUnnamed:
		reason, message = model.ReasonIdentityUnknown, "its BMC now shows a machine without a UUID, which may be another one than "+s.Record.UUID
	case bmcs.ShownOther:
		reason, message = model.ReasonIdentityMismatch, "its BMC now shows another machine than that with UUID "+s.Record.UUID
	}
	return s.WhyBy(reason, message, proposal.RackOperator)
}

// RanWhenLastRead reports whether why is only that the server cannot be read, and it was On: what runs on it goes on.
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

// unfree says in a few words why no claim may be bound to an Available server; "" if one may.
func (s *Server) unfree() string {
	switch {
	case s.State() != model.StateAvailable:
		return ""
	case s.Manifest != nil && s.Manifest.Spec.Unclaimable:
		return "cordoned"
	case s.Manifest == nil && s.Desired.IsQuarantined(s.Name.Identity()):
		return "without a manifest that can be read"
	case s.Service.By != "":
		return "about to enter Maintenance"
	case s.outOfReach():
		return "out of reach"
	case s.Contradicted.Reason != "":
		return "not the machine that Git describes"
	case s.Duplicate.Reason != "":
		return "of a UUID that another machine has"
	case s.Power() != model.PowerOff || s.Reading.Offs < s.Policy.OffReadings || s.Record.Boot.Ticket.Open():
		return "not yet powered off"
	}
	return ""
}

// outOfReach reports whether the server cannot be acted upon now, or waits because its last move failed.
func (s *Server) outOfReach() bool {
	return s.Blocked.Reason != "" || s.Reading.Failures > 0 || s.Now.Before(s.NotBefore()) || life.FoundInGap(s.Server)
}

// coming reports whether the server becomes free by itself: it is being discovered or wiped, and nothing prevents that.
func (s *Server) coming() bool {
	switch s.Record.Life.State {
	case model.StateInitial:
		if !s.Record.Life.FoundRunning.IsZero() || s.Policy.DiscoveryImage == "" {
			return false
		}
	case model.StateDiscovery:
	case model.StateCleanup:
		if disks.Mode(s.Server) != model.CleanupNone && s.Policy.DiscoveryImage == "" {
			return false
		}
	default:
		return false
	}
	return !(s.Manifest != nil && s.Manifest.Spec.Unclaimable) && !s.outOfReach()
}

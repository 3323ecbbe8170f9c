package world

import (
	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/life"
)

// ForClaims returns the server as claims see it.
func (s *Server) ForClaims() *bind.View {
	s.Coming = s.coming()
	if s.State() == model.StateAvailable {
		s.Unfree = s.unfree()
	}
	return &s.View
}

// unfree says in a few words why no claim may be bound to an Available server; "" if one may.
func (s *Server) unfree() string {
	switch {
	case s.Manifest != nil && s.Manifest.Spec.Unclaimable:
		return "cordoned"
	case s.Manifest == nil && s.Desired.IsQuarantined(s.Name.Identity()):
		return "without a manifest that can be read"
	case s.Service.By != "":
		return "about to enter Maintenance"
	case s.outOfReach():
		return "out of reach"
	case s.Contradicted.Reason != "":
		return "not what Git says of it"
	case s.Duplicate.Reason != "":
		return "of a UUID that another machine has"
	case boot.Unsupported(s.Server).Reason != "":
		return "of an architecture that is not in boot.architectures"
	case s.Power() != model.PowerOff || s.Reading.Offs < s.Policy.OffReadings || s.Record.Boot.Ticket.Open():
		return "not yet powered off"
	}
	return ""
}

// outOfReach reports whether the server cannot be acted upon now, or its last move failed and waits to be tried
// again.
func (s *Server) outOfReach() bool {
	return s.Blocked.Reason != "" || s.Reading.Failures > 0 || s.Now.Before(s.NotBefore()) || life.FoundInGap(s.Server)
}

// coming reports whether the server becomes free without an action of a person: it is being discovered or wiped, and
// nothing prevents that.
func (s *Server) coming() bool {
	switch s.Record.Life.State {
	case model.StateInitial:
		if !s.Record.Life.FoundRunning.IsZero() || s.Policy.DiscoveryImage == "" {
			return false
		}
	case model.StateDiscovery:
	case model.StateCleanup:
		if disks.Mode(s.Server) != model.CleanupNone && disks.Image(s.Server) == "" {
			return false
		}
	default:
		return false
	}
	return !(s.Manifest != nil && s.Manifest.Spec.Unclaimable) && !s.outOfReach()
}

func (s *Server) labels() map[string]string {
	if s.Behind == nil {
		return model.ServerLabels(nil, s.Manifest)
	}
	return model.ServerLabels(s.Behind.Manifest, s.Manifest)
}

package world

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// ToBind is the view of a server by which claims are bound.
func (s *Server) ToBind() bind.Server {
	v := bind.Server{
		Name: s.Name, UUID: s.Record.UUID, Labels: s.labels(), Manifest: s.Manifest, State: s.Record.Life.State, Claim: s.Record.Claim.Name,
		Busy: s.World.In.Busy[s.Name], Coming: s.coming(), Bootstrapped: s.Record.Life.BootstrapCompleted,
	}
	if v.State == model.StateAvailable {
		v.Unfree = s.unfree()
	}
	if len(s.Desired.ReadinessRules) > 0 {
		s.setConditions(&v)
	}
	return v
}

// Unbindable says why a claim must not be bound, whatever servers are free.
func (f *World) Unbindable(name model.ClaimName) proposal.Why {
	for _, u := range f.Record.Unreadable {
		if u.Claim == name {
			return proposal.Why{Reason: string(model.DoubtUnreadable), Message: fmt.Sprintf("the record of server %s, which serves it, cannot be read: approve by %s "+
				"that it is given up", u.Server, proposal.ApproveLine(u.Token)), Since: u.Since, Actor: proposal.RackOperator}
		}
	}
	if why := f.boundInGap(name); why.Reason != "" {
		return why
	}
	if len(f.In.Desired.Absent) > 0 {
		if a, listed := f.In.Desired.Absence(name.Identity()); listed && a.Blob == "" {
			return laws.AbsentWhy("claim "+string(name), a)
		}
	}
	return f.unknownFleet(name)
}

// unfree says in a few words why no claim may be bound to an Available server; "" if one may.
func (s *Server) unfree() string {
	f := s.World
	switch {
	case s.Manifest != nil && s.Manifest.Spec.Unclaimable:
		return "cordoned"
	case s.Manifest == nil && f.In.Desired.IsQuarantined(s.Name.Identity()):
		return "without a manifest that can be read"
	case s.Service.By != "":
		return "about to enter Maintenance"
	case s.outOfReach():
		return "out of reach"
	case f.isContradicted(s):
		return "not what Git says of it"
	case s.duplicate().Reason != "":
		return "of a UUID that another machine has"
	case boot.Unsupported(s.Server).Reason != "":
		return "of an architecture that is not in boot.architectures"
	case s.Power() != model.PowerOff || s.Reading.Offs < f.In.Policy.OffReadings || s.Record.Boot.Ticket.Open():
		return "not yet powered off"
	}
	return ""
}

func (s *Server) outOfReach() bool {
	return s.Blocked.Reason != "" || s.Reading.Failures > 0 || s.putOff()
}

// putOff reports whether the server's last move failed and waits to be tried again.
func (s *Server) putOff() bool {
	return s.Now.Before(s.NotBefore()) || life.FoundInGap(s.Server)
}

// coming reports whether the server becomes free without an action of a person: it is being
// discovered or wiped, and nothing prevents that.
func (s *Server) coming() bool {
	if s.Manifest != nil && s.Manifest.Spec.Unclaimable || s.outOfReach() {
		return false
	}
	switch s.Record.Life.State {
	case model.StateInitial:
		return s.Record.Life.FoundRunning.IsZero() && s.Policy.DiscoveryImage != ""
	case model.StateDiscovery:
		return true
	case model.StateCleanup:
		return disks.Mode(s.Server) == model.CleanupNone || disks.Image(s.Server) != ""
	case model.StateAvailable, model.StateReserved, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	return false
}

// labels are the labels of the server, see model.ServerLabels.
func (s *Server) labels() map[string]string {
	if s.Behind == nil {
		return model.ServerLabels(nil, s.Manifest)
	}
	return model.ServerLabels(s.Behind.Manifest, s.Manifest)
}

package world

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/life"
)

// ToBind is the view of a server by which claims are bound.
func (s *Server) ToBind() bind.Server {
	v := bind.Server{
		Name: s.Name, UUID: s.Record.UUID, Labels: s.labels(), Manifest: s.Manifest, State: s.Record.Life.State, Claim: s.Record.Claim.Name,
		Busy: s.Busy, Coming: s.coming(), Bootstrapped: s.Record.Life.BootstrapCompleted,
	}
	if v.State == model.StateAvailable {
		v.Unfree = s.unfree()
	}
	if len(s.Desired.ReadinessRules) > 0 {
		s.setConditions(&v)
	}
	return v
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

// outOfReach reports whether the server cannot be acted upon now, or its last move failed and waits to be
// tried again.
func (s *Server) outOfReach() bool {
	return s.Blocked.Reason != "" || s.Reading.Failures > 0 || s.Now.Before(s.NotBefore()) || life.FoundInGap(s.Server)
}

// coming reports whether the server becomes free without an action of a person: it is being
// discovered or wiped, and nothing prevents that.
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

// labels are the labels of the server, see model.ServerLabels.
func (s *Server) labels() map[string]string {
	if s.Behind == nil {
		return model.ServerLabels(nil, s.Manifest)
	}
	return model.ServerLabels(s.Behind.Manifest, s.Manifest)
}

// setConditions sets the statuses that ServerReadinessRules can require.
func (s *Server) setConditions(v *bind.Server) {
	v.BMCReadable, v.Wiped, v.InventoryComplete = s.bmcReadable(), wiped(s.Record), model.StatusUnknown
	// A probe's report can be lost with the store, the record has its disks still.
	v.Discovered = status(s.Observed.Probes[s.Name] != nil || !s.Record.Disks.KnownAt.IsZero())
	if inv := s.Facts.Inventory; inv != nil {
		v.InventoryComplete = status(len(inv.Problems) == 0)
	}
}

func status(holds bool) string {
	if holds {
		return model.StatusTrue
	}
	return model.StatusFalse
}

// bmcReadable is the status of ConditionBMCReadable. A BMC that was read before a restart
// counts as readable until it does not answer, as its own status says.
func (s *Server) bmcReadable() string {
	switch s.Blocked.Reason {
	case model.ReasonPending, model.ReasonIgnored, model.ReasonOrphaned, model.ReasonDecommissioned:
		return model.StatusUnknown
	}
	return status(s.Blocked.Reason == "" && s.Reading.Failures < 2)
}

// wiped is the status of ConditionWiped.
func wiped(rec *model.ServerRecord) string {
	failed := slices.ContainsFunc(rec.Disks.Wiped, func(d model.DiskWipe) bool { return d.Result == model.WipeFailed })
	missing := slices.ContainsFunc(rec.Disks.Missing, func(m model.MissingDisk) bool { return !m.Gone })
	if !failed && !missing && len(rec.Disks.Wiped) == 0 {
		return model.StatusUnknown
	}
	return status(!failed && !missing)
}

package world

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
)

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

package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// partsDue reports whether the parts of a server at rest are to be read with its power.
func (s *server) partsDue() bool {
	inv, now := s.facts.Inventory, s.now()
	if inv == nil || now.Before(s.reading.PartsAfter) {
		return false // the server's life reads them when it needs them
	}
	read := s.reading.InventoryAt
	mayLack := !read.IsZero() || len(inv.Processors) == 0 || inv.MemoryBytes == 0 // what only shows while it is on
	switch {
	case mayLack && !s.reading.InventoryOn && s.power() == model.PowerOn && s.reading.Runs():
		return true
	case (len(inv.Problems) > 0 || s.blockedBySecureBoot()) && !now.Before(s.partsAgain()):
		return true
	case read.IsZero():
		return now.Sub(s.partsTime()) < proposal.PartsLate
	}
	return read.Before(s.partsTime())
}

// blockedBySecureBoot reports whether the server waits for its Secure Boot to be switched off.
func (s *server) blockedBySecureBoot() bool {
	return s.rec.Boot.Problem != nil && s.rec.Boot.Problem.Reason == model.ReasonSecureBootBlocksProbe
}

// partsAgain is when parts of which some could not be read are due: a while after that, or,
// if that was before the start of this process, a while after the start, of a fleet one
// server after the other.
func (s *server) partsAgain() time.Time {
	if s.reading.InventoryAt.IsZero() {
		return s.fleet.in.Started.Add(time.Duration(proposal.Jitter(s.name) * float64(proposal.PartsLate)))
	}
	return s.reading.InventoryAt.Add(s.reading.PartsPause())
}

// partsTime is when the parts of the server were due last. By its name each has its time of
// the day.
func (s *server) partsTime() time.Time {
	spread := time.Duration(proposal.Jitter(s.name) * float64(proposal.PartsEvery))
	return s.now().Add(-spread).Truncate(proposal.PartsEvery).Add(spread)
}

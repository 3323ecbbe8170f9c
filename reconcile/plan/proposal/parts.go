package proposal

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/reading"
)

// PartsDue reports whether the parts of a server at rest have to be read with its power.
func PartsDue(s *Server) bool {
	inv, now := s.Facts.Inventory, s.Now
	if inv == nil || now.Before(s.Reading.PartsAfter) {
		return false // the server's life reads them when it needs them
	}
	read := s.Reading.InventoryAt
	mayLack := !read.IsZero() || len(inv.Processors) == 0 || inv.MemoryBytes == 0 // what only shows while it is on
	switch {
	case mayLack && !s.Reading.InventoryOn && s.Power() == model.PowerOn && s.Reading.Runs():
		return true
	case (len(inv.Problems) > 0 || blockedBySecureBoot(s)) && !now.Before(partsAgain(s)):
		return true
	case read.IsZero():
		return now.Sub(partsTime(s)) < reading.PartsLate
	}
	return read.Before(partsTime(s))
}

// blockedBySecureBoot reports whether the server waits for its Secure Boot to be switched off.
func blockedBySecureBoot(s *Server) bool {
	return s.Record.Boot.Problem != nil && s.Record.Boot.Problem.Reason == model.ReasonSecureBootBlocksProbe
}

// partsAgain is when parts of which some could not be read are due: a while after that, or,
// if that was before the start of this process, a while after the start, of a fleet one
// server after the other.
func partsAgain(s *Server) time.Time {
	if s.Reading.InventoryAt.IsZero() {
		return s.Started.Add(time.Duration(policy.Jitter(s.Name) * float64(reading.PartsLate)))
	}
	return s.Reading.InventoryAt.Add(s.Reading.PartsPause())
}

// partsTime is when the parts of the server were due last. By its name each has its time of
// the day.
func partsTime(s *Server) time.Time {
	spread := time.Duration(policy.Jitter(s.Name) * float64(reading.PartsEvery))
	return s.Now.Add(-spread).Truncate(reading.PartsEvery).Add(spread)
}

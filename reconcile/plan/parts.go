package plan

import (
	"time"

	"ingot/model"
)

const (
	// partsEvery is how often the parts of a server are read that were all read: drives and
	// memory are changed while nobody says so.
	partsEvery = 24 * time.Hour
	// partsRetry is how long after a reading that failed in parts the next is due, doubled
	// each time up to partsRetryMax: some parts are never to be had.
	partsRetry, partsRetryMax = 5 * time.Minute, 6 * time.Hour
	// partsOns is how many readings in a row that said On make a server's parts worth reading:
	// some BMCs, such as those of blades, show them once the firmware has met them.
	partsOns = 3
	// partsLate is for how long after its time of the day the parts of a server are read that
	// were not read since the start: not all of a fleet's at once.
	partsLate = 2 * time.Hour
)

// runs reports whether the server has been On for long enough to show its parts.
func (r Reading) runs() bool { return r.Ons >= partsOns && !r.POST }

// partsDue reports whether the parts of a server at rest are to be read with its power.
func (s *server) partsDue() bool {
	inv, now := s.facts.Inventory, s.now()
	if inv == nil || now.Before(s.reading.PartsAfter) {
		return false // the server's life reads them when it needs them
	}
	read := s.reading.InventoryAt
	mayLack := !read.IsZero() || len(inv.Processors) == 0 || inv.MemoryBytes == 0 // what only shows while it is on
	switch {
	case mayLack && !s.reading.InventoryOn && s.power() == model.PowerOn && s.reading.runs():
		return true
	case (len(inv.Problems) > 0 || s.blockedBySecureBoot()) && !now.Before(s.partsAgain()):
		return true
	case read.IsZero():
		return now.Sub(s.partsTime()) < partsLate
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
		return s.fleet.in.Started.Add(time.Duration(jitter(s.name) * float64(partsLate)))
	}
	return s.reading.InventoryAt.Add(s.reading.partsPause())
}

// partsPause is how long after a reading that failed in parts they are read again.
func (r Reading) partsPause() time.Duration {
	return min(partsRetry<<min(max(r.Unread-1, 0), 16), partsRetryMax)
}

// partsTime is when the parts of the server were due last. By its name each has its time of
// the day.
func (s *server) partsTime() time.Time {
	spread := time.Duration(jitter(s.name) * float64(partsEvery))
	return s.now().Add(-spread).Truncate(partsEvery).Add(spread)
}

// ReadParts is the reading after one of all parts, of which some may have failed.
func (r Reading) ReadParts(inv *model.Inventory) Reading {
	r.InventoryAt, r.Unread = r.At, r.Unread+1
	if inv == nil || len(inv.Problems) == 0 {
		r.Unread = 0
	}
	r.InventoryOn = r.InventoryOn || r.runs()
	return r
}

// MissedParts is the reading after an attempt to read all parts that came to nothing: the
// power is read without them for a while, for that may be had.
func (r Reading) MissedParts(now time.Time) Reading {
	r.Unread++
	r.PartsAfter = now.Add(r.partsPause())
	return r
}

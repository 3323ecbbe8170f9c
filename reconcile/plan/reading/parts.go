package reading

import (
	"time"

	"ingot/model"
)

const (
	// PartsEvery is how often the parts of a server are read that were all read: drives and
	// memory are changed without notice.
	PartsEvery = 24 * time.Hour
	// PartsRetry is the pause after a reading that failed in parts. It is doubled each time, up to
	// PartsRetryMax: some parts can never be read.
	PartsRetry = 5 * time.Minute
	// PartsRetryMax is the longest such pause.
	PartsRetryMax = 6 * time.Hour
	// PartsOns is how many readings in a row that said On make a server's parts worth reading:
	// some BMCs, such as those of blades, show them once the firmware has met them.
	PartsOns = 3
	// PartsLate is for how long after its time of the day the parts of a server are read that
	// were not read since the start: not all of a fleet's at once.
	PartsLate = 2 * time.Hour
)

// Runs reports whether the server has been On for long enough to show its parts.
func (r State) Runs() bool { return r.Ons >= PartsOns && !r.POST }

// PartsPause is how long after a reading that failed in parts they are read again.
func (r State) PartsPause() time.Duration {
	return min(PartsRetry<<min(max(r.Unread-1, 0), 16), PartsRetryMax)
}

// ReadParts is the reading after one of all parts, of which some may have failed.
func (r State) ReadParts(inv *model.Inventory) State {
	r.InventoryAt, r.Unread = r.At, r.Unread+1
	if inv == nil || len(inv.Problems) == 0 {
		r.Unread = 0
	}
	r.InventoryOn = r.InventoryOn || r.Runs()
	return r
}

// MissedParts is the reading after a failed attempt to read all parts: the power is read without
// them for a while, because that may still work.
func (r State) MissedParts(now time.Time) State {
	r.Unread++
	r.PartsAfter = now.Add(r.PartsPause())
	return r
}

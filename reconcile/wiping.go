package reconcile

import (
	"fmt"

	"ingot/model"
)

// cleanupStatus is how far the wipe of a server's disks is, as the status branch
// shows it: in steps of ten per cent, so that a wipe costs few commits.
type cleanupStatus struct {
	Mode  string       `json:"mode"`
	Disks []diskStatus `json:"disks"`
}

type diskStatus struct {
	Name      string `json:"name"`
	Serial    string `json:"serial,omitempty"`
	SizeBytes uint64 `json:"sizeBytes,omitempty"`
	Method    string `json:"method,omitempty"`
	Percent   *int   `json:"percent,omitempty"` // nil = the disk does not say
	Result    string `json:"result,omitempty"`
}

// wiping is how far the wipe with the server's newest ticket is, nil if nothing was
// heard of it.
func (s *server) wiping() *model.WipeProgress { return s.bootFacts().wiping() }

func (b bootFacts) wiping() *model.WipeProgress {
	if b.ticket == nil || b.wipe != nil && b.wipe.Ticket == b.ticket.ID || b.progressed == nil || b.progressed.Ticket != b.ticket.ID {
		return nil
	}
	return b.progressed
}

// cleanupOf is a wipe as the status branch shows it, nil while there is none.
func cleanupOf(w *model.WipeProgress) *cleanupStatus {
	if w == nil {
		return nil
	}
	st := &cleanupStatus{Mode: w.Mode}
	for _, d := range w.Disks {
		st.Disks = append(st.Disks, diskStatus{d.Name, d.Serial, d.SizeBytes, d.Method, tens(d.Percent), d.Result})
	}
	return st
}

// tens rounds per cent down to tens; nil = the disk does not say.
func tens(percent int) *int {
	if percent < 0 {
		return nil
	}
	return new(min(percent, 100) / 10 * 10)
}

// wipeText says how far a wipe is: how many disks are done, and which of the others
// is the furthest behind of those that say.
func wipeText(w *model.WipeProgress) string {
	text := fmt.Sprintf("%d of %s done", doneDisks(w), plural(len(w.Disks), "disk"))
	d, behind := furthestBehind(w)
	if !behind {
		return text
	}
	text += ", " + d.Name
	percent := tens(d.Percent)
	if percent != nil {
		text += fmt.Sprintf(" at %d %%", *percent)
	}
	if d.Method != "" {
		text += " (" + d.Method + ")"
	}
	if percent == nil {
		text += ": the disk does not say how far it is"
	}
	return text
}

func doneDisks(w *model.WipeProgress) int {
	done := 0
	for _, d := range w.Disks {
		if d.Result != "" {
			done++
		}
	}
	return done
}

// furthestBehind is the disk that is furthest behind of those that are not done and
// say how far they are, else the first that does not say; false when all are done.
func furthestBehind(w *model.WipeProgress) (slowest model.DiskProgress, behind bool) {
	for _, d := range w.Disks {
		if d.Result != "" {
			continue
		}
		says, before := tens(d.Percent), tens(slowest.Percent)
		if !behind || says != nil && (before == nil || *says < *before) {
			slowest, behind = d, true
		}
	}
	return slowest, behind
}

package disks

import (
	"fmt"

	"ingot/model"
	"ingot/model/text"
)

// WipedText names what was wiped.
func WipedText(disks []model.DiskWipe) string {
	var all []model.MissingDisk
	for _, d := range disks {
		all = append(all, model.MissingDisk{Name: d.Name, Serial: d.Serial, Model: d.Model})
	}
	return text.Plural(len(disks), "disk") + ", " + Text(all)
}

// FailedDisksText names the disks that were not wiped, by serial number; "" = none.
func FailedDisksText(disks []model.DiskWipe) string {
	names := ""
	for _, d := range disks {
		if d.Result != model.WipeFailed {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += fmt.Sprintf("%s (serial %s): %s", d.Name, d.Serial, d.Error)
	}
	return names
}

// WipeText says how far a wipe is: how many disks are done, and which of the others
// is the furthest behind of those that say.
func WipeText(w *model.WipeProgress) string {
	says := fmt.Sprintf("%d of %s done", doneDisks(w), text.Plural(len(w.Disks), "disk"))
	d, behind := furthestBehind(w)
	if !behind {
		return says
	}
	says += ", " + d.Name
	percent := d.Tens()
	if percent != nil {
		says += fmt.Sprintf(" at %d %%", *percent)
	}
	if d.Method != "" {
		says += " (" + d.Method + ")"
	}
	if percent == nil {
		says += ": the disk does not say how far it is"
	}
	return says
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
		says, before := d.Tens(), slowest.Tens()
		if !behind || says != nil && (before == nil || *says < *before) {
			slowest, behind = d, true
		}
	}
	return slowest, behind
}

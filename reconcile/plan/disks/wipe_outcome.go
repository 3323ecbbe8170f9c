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

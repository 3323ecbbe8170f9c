package fleettest

import (
	"fmt"

	"ingot/model"
)

// SDBMissing is a disk that a wipe did not account for, SDBGone the same once somebody
// has accepted that.
var (
	SDBMissing = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M"}
	SDBGone    = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M", Gone: true}
)

// Drive is a disk as a probe sees it.
func Drive(name, serial string, change ...func(*model.ProbeDisk)) model.ProbeDisk {
	d := model.ProbeDisk{Name: name, Serial: serial, Model: "M", SizeBytes: 1 << 40}
	for _, f := range change {
		f(&d)
	}
	return d
}

// WipedDisks are disks with these serial numbers in the report of a wipe.
func WipedDisks(serials ...string) []model.DiskWipe {
	var list []model.DiskWipe
	for i, s := range serials {
		list = append(list, model.DiskWipe{Name: fmt.Sprint("disk", i), Serial: s, SizeBytes: 1 << 40, Result: model.WipeDone})
	}
	return list
}

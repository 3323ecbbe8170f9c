package disks

import (
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// Limits on the disks that are missing from the report of a wipe.
const (
	// MaxMissing is how many of a server are remembered: as many as a report may have.
	MaxMissing = 1024
	// MaxText is how much of its serial number identifies a disk, in bytes, and how much of
	// its name and model is shown.
	MaxText = 128
)

// SameMissing reports whether two entries are of one disk.
func SameMissing(a, b model.MissingDisk) bool {
	if a.Serial == "" || b.Serial == "" {
		return a.Serial == b.Serial && a.Name == b.Name
	}
	return model.Disk{Serial: a.Serial, Model: a.Model}.Same(model.Disk{Serial: b.Serial, Model: b.Model})
}

// Remembered are the accepted disks that the next release does not list again: those that are
// gone. A disk that a BMC still shows, or a system sees, may hold data of the next tenant.
// Replaced ones are listed, and checked again each time.
func Remembered(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool {
		return m.ReplacedBy == "" && (m.FromBMC || m.NotWiped || m.Serial == "")
	})
}

// NotAccepted are the missing disks that were not accepted.
func NotAccepted(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return m.Gone })
}

// serialKey is a serial number as it is compared: probes and disks differ in blanks
// and in case.
func serialKey(serial string) string { return strings.ToLower(Clip(serial)) }

// Clip bounds what a probe calls a disk.
func Clip(s string) string { return text.Clip(s, MaxText) }

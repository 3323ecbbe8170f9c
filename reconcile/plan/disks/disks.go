package disks

import (
	"fmt"
	"slices"
	"strings"

	"ingot/model"
)

// MaxDisks is how many disks of a server are remembered.
const MaxDisks = 512

// ProbedDisks are the disks that a probe reported. Drives without a medium, and media
// that the BMC lends, hold nothing of a tenant's; disks on a storage network are others'.
func ProbedDisks(all []model.ProbeDisk) (list []model.Disk) {
	for _, d := range all[:min(len(all), MaxDisks)] {
		if d.Removable && d.SizeBytes == 0 || d.Remote || model.VirtualMedia(d.Vendor, d.Model) {
			continue
		}
		list = append(list, Disk(d.Name, d.Serial, d.Model, d.SizeBytes, model.WorldWideName(d.WWID)))
	}
	return list
}

// Drives are the drives that a BMC shows with any property.
func Drives(all []model.Storage) (list []model.Disk) {
	for _, storage := range all {
		for _, d := range storage.Drives {
			if d.SerialNumber == "" && len(d.IDs) == 0 && d.Bytes == 0 || model.VirtualMedia(d.Vendor, d.Model) {
				continue
			}
			known := Disk(d.Name, d.SerialNumber, d.Model, uint64(max(0, d.Bytes)), d.IDs...)
			known.FromBMC, known.Volumes, known.Bay = true, d.Volumes, d.Bay
			// two storage subsystems may list one drive, each with volumes of its own
			if i := slices.IndexFunc(list, func(k model.Disk) bool { return sameEntry(k, known) }); i >= 0 {
				list[i].Volumes = slices.Concat(list[i].Volumes, d.Volumes)
				continue
			}
			list = append(list, known)
		}
	}
	return list
}

// Disk is what is remembered of a disk.
func Disk(name, serial, kind string, bytes uint64, ids ...string) model.Disk {
	d := model.Disk{Name: Clip(name), Serial: Clip(serial), Model: Clip(kind), Bytes: bytes}
	for _, id := range ids {
		if id != "" {
			d.IDs = append(d.IDs, id)
		}
	}
	return d
}

// JoinDisks are the disks of both lists, each once. What is reported later of a drive's volumes
// and place counts: volumes can be made anew, and drives that are back are not replaced.
func JoinDisks(known, more []model.Disk) []model.Disk {
	all := slices.Clone(known)
	for _, d := range more {
		i := slices.IndexFunc(all, func(k model.Disk) bool { return sameEntry(k, d) })
		switch {
		case i >= 0 && d.FromBMC && all[i].FromBMC:
			all[i].Volumes, all[i].Bay, all[i].ReplacedBy = d.Volumes, d.Bay, d.ReplacedBy
		case i < 0 && len(all) < MaxDisks:
			all = append(all, d)
		}
	}
	return all
}

// sameEntry reports whether one source reports a disk twice. A probe and a BMC may each
// report the same disk, or one behind a RAID controller: both are kept. A disk without an
// identifier goes by its name.
func sameEntry(a, b model.Disk) bool {
	if a.FromBMC != b.FromBMC {
		return false
	}
	if a.Nameless() && b.Nameless() {
		return a.Name == b.Name
	}
	return a.Same(b)
}

// minCovered is how much of a disk's known size a wipe covers, in percent: less, and an
// area of it is hidden from the system.
const minCovered = 99

// wholly reports whether a disk of some size was wiped, as far as is known.
func wholly(known, wiped uint64) bool {
	return known == 0 || wiped >= known/100*minCovered
}

// fits reports whether two sizes can be of one disk.
func fits(a, b uint64) bool {
	return a == 0 || b == 0 || wholly(a, b) && wholly(b, a)
}

// Account is the report of a wipe, as what it accounts for.
type Account struct {
	wiped []model.Disk
	// idle are disks that need no wipe, and the system saw them.
	idle []model.Disk
	// used are those among wiped that a disk without an identifier was matched with, by the
	// source of that disk; volumes are those that a volume was matched with.
	used    map[bool][]int
	volumes map[int]string
}

// NewAccount returns the account of the report of a wipe.
func NewAccount(reported []model.DiskWipe) *Account {
	a := &Account{used: make(map[bool][]int), volumes: make(map[int]string)}
	for _, w := range reported {
		switch {
		case w.Result == model.WipeDone:
			a.wiped = append(a.wiped, w.Disk())
		case w.Result == model.WipeSkipped && NeedsNoWipe(w):
			a.idle = append(a.idle, w.Disk())
		}
	}
	return a
}

// NeedsNoWipe reports whether a disk was left alone for a reason that counts. Probes that
// give no reason skip what has no medium and what a BMC lends, too.
func NeedsNoWipe(w model.DiskWipe) bool {
	switch w.Reason {
	case model.SkipNoMedium, model.SkipVirtualMedia, model.SkipRemote:
		return true
	case "":
		return w.SizeBytes == 0 || model.VirtualMedia("", w.Model)
	}
	return false
}

// Covers reports whether the wipe accounts for a disk: it was wiped itself, or each
// volume of a RAID controller that it is part of.
func (a *Account) Covers(d model.Disk, all []model.Disk) bool {
	switch {
	case a.coversVolumes(d, all):
		return true
	case d.Nameless():
		return a.coversNameless(d, all)
	}
	bytes, seen := a.bytes(d)
	return seen && wholly(d.Bytes, bytes) || slices.ContainsFunc(a.idle, d.Same)
}

// bytes is how much of a disk was wiped. The system may see it in parts, as namespaces
// of an NVMe disk, each with a world-wide name of its own.
func (a *Account) bytes(d model.Disk) (sum uint64, seen bool) {
	var parts []string
	for _, w := range a.wiped {
		switch {
		case !d.Same(w):
			continue
		case len(w.IDs) == 0:
			sum = max(sum, w.Bytes)
		case !slices.Contains(parts, w.IDs[0]): // else it is another path to one that was counted
			sum, parts = sum+w.Bytes, append(parts, w.IDs[0])
		}
		seen = true
	}
	return sum, seen
}

// coversVolumes reports whether each volume that a drive is part of was wiped.
func (a *Account) coversVolumes(d model.Disk, all []model.Disk) bool {
	if len(d.Volumes) == 0 {
		return false
	}
	for _, v := range d.Volumes {
		if !a.coversVolume(v, all) {
			return false
		}
	}
	return true
}

// coversVolume reports whether a volume was wiped: known by its world-wide name, or, where
// the BMC has none, as a disk of its size that is no drive that the BMC shows, and that
// no other volume was taken for.
func (a *Account) coversVolume(v model.DiskVolume, all []model.Disk) bool {
	key := fmt.Sprint(v.Name, "/", v.Bytes)
	for i, w := range a.wiped {
		if !wholly(v.Bytes, w.Bytes) {
			continue
		}
		if len(v.IDs) > 0 && len(w.IDs) > 0 {
			if w.Same(model.Disk{IDs: v.IDs}) {
				return true
			}
			continue
		}
		taken, is := a.volumes[i]
		if v.Bytes == 0 || !fits(v.Bytes, w.Bytes) || is && taken != key || shows(all, w) {
			continue
		}
		a.volumes[i] = key
		return true
	}
	return false
}

// shows reports whether a BMC shows a disk as a drive.
func shows(all []model.Disk, w model.Disk) bool {
	return slices.ContainsFunc(all, func(d model.Disk) bool { return d.FromBMC && d.Same(w) })
}

// coversNameless matches a disk without an identifier with one that was wiped, has its
// size, and is none of those that the same source has a name for.
func (a *Account) coversNameless(d model.Disk, all []model.Disk) bool {
	for i, w := range a.wiped {
		named := slices.ContainsFunc(all, func(k model.Disk) bool { return k.FromBMC == d.FromBMC && k.Same(w) })
		if !named && fits(d.Bytes, w.Bytes) && !slices.Contains(a.used[d.FromBMC], i) {
			a.used[d.FromBMC] = append(a.used[d.FromBMC], i)
			return true
		}
	}
	return false
}

// Accepts reports whether what a person accepts names a disk: by serial number, or by name
// if it has none.
func Accepts(what string, d model.MissingDisk) bool {
	return slices.ContainsFunc(strings.Split(what, ","), func(named string) bool {
		named = serialKey(named)
		return named != "" && (named == serialKey(d.Serial) || d.Serial == "" && named == strings.ToLower(d.Name))
	})
}

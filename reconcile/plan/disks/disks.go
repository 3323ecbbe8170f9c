package disks

import (
	"cmp"
	"fmt"
	"slices"

	"ingot/model"
)

// MaxDisks is how many disks of a server are remembered.
const MaxDisks = 512

// probed are the disks that a probe reported. Drives without a medium, and media
// that the BMC lends, hold nothing of a tenant's; disks on a storage network are others'.
func probed(all []model.ProbeDisk) (list []model.Disk) {
	for _, d := range all[:min(len(all), MaxDisks)] {
		if d.Removable && d.SizeBytes == 0 || d.Remote || model.VirtualMedia(d.Vendor, d.Model) {
			continue
		}
		list = append(list, Disk(d.Name, d.Serial, d.Model, d.SizeBytes, model.WorldWideName(d.WWID)))
	}
	return list
}

// drives are the drives that a BMC shows with any property.
func drives(all []model.Storage) (list []model.Disk) {
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
	d := model.Disk{Name: clip(name), Serial: clip(serial), Model: clip(kind), Bytes: bytes}
	for _, id := range ids {
		if id != "" {
			d.IDs = append(d.IDs, id)
		}
	}
	return d
}

// join are the disks of both lists, each once. The later report of a drive's volumes and place counts.
func join(known, more []model.Disk) []model.Disk {
	all := slices.Clone(known)
	for _, d := range more {
		i := slices.IndexFunc(all, func(k model.Disk) bool { return sameEntry(k, d) })
		switch {
		case i >= 0 && d.FromBMC:
			all[i].Volumes, all[i].Bay, all[i].ReplacedBy = d.Volumes, d.Bay, d.ReplacedBy
		case i < 0 && len(all) < MaxDisks:
			all = append(all, d)
		}
	}
	return all
}

// sameEntry reports whether one source reports a disk twice. Those of a probe and of a BMC may be behind a RAID.
func sameEntry(a, b model.Disk) bool {
	if a.Nameless() && b.Nameless() {
		return a.FromBMC == b.FromBMC && a.Name == b.Name
	}
	return a.FromBMC == b.FromBMC && a.Same(b)
}

// wholly reports whether a disk was wiped. If 1 % or more of it was not, an area of it is hidden from the system.
func wholly(known, wiped uint64) bool { return known == 0 || wiped >= known/100*99 }

func fits(a, b uint64) bool { return a == 0 || b == 0 || wholly(a, b) && wholly(b, a) }

type account struct {
	wiped []model.Disk
	// idle are disks that need no wipe, and the system saw them.
	idle []model.Disk
	// used are the wiped disks that a disk without an identifier was matched with, by source; volumes those of volumes.
	used    map[bool][]int
	volumes map[int]string
}

func newAccount(reported []model.DiskWipe) *account {
	a := &account{used: make(map[bool][]int), volumes: make(map[int]string)}
	for _, w := range reported {
		switch {
		case w.Result == model.WipeDone:
			a.wiped = append(a.wiped, w.Disk())
		case w.Result == model.WipeSkipped && needsNoWipe(w):
			a.idle = append(a.idle, w.Disk())
		}
	}
	return a
}

// needsNoWipe reports whether a disk was left alone for a reason that counts. Old probes give no reason.
func needsNoWipe(w model.DiskWipe) bool {
	switch w.Reason {
	case model.SkipNoMedium, model.SkipVirtualMedia, model.SkipRemote:
		return true
	}
	return w.Reason == "" && (w.SizeBytes == 0 || model.VirtualMedia("", w.Model))
}

// covers reports whether a disk was wiped itself, or each volume of a RAID controller that it is part of.
func (a *account) covers(d model.Disk, all []model.Disk) bool {
	open := func(v model.DiskVolume) bool { return !a.coversVolume(v, all) }
	switch {
	case len(d.Volumes) > 0 && !slices.ContainsFunc(d.Volumes, open):
		return true
	case d.Nameless():
		return a.coversNameless(d, all)
	}
	bytes, seen := a.bytes(d)
	return seen && wholly(d.Bytes, bytes) || slices.ContainsFunc(a.idle, d.Same)
}

// bytes is how much of a disk was wiped. The system may see it in parts, such as namespaces of an NVMe disk.
func (a *account) bytes(d model.Disk) (sum uint64, seen bool) {
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

// coversVolume reports whether a volume was wiped: known by its world-wide name, or, without one, as a disk of its
// size that is neither a drive that the BMC shows nor another volume.
func (a *account) coversVolume(v model.DiskVolume, all []model.Disk) bool {
	key := fmt.Sprint(v.Name, "/", v.Bytes)
	for i, w := range a.wiped {
		taken, is := a.volumes[i]
		switch {
		case !wholly(v.Bytes, w.Bytes):
		case len(v.IDs) > 0 && len(w.IDs) > 0:
			if w.Same(model.Disk{IDs: v.IDs}) {
				return true
			}
		case v.Bytes > 0 && fits(v.Bytes, w.Bytes) && (!is || taken == key) && !has(all, true, w):
			a.volumes[i] = key
			return true
		}
	}
	return false
}

// coversNameless matches a disk without an identifier with an unmatched one of its size that was wiped.
func (a *account) coversNameless(d model.Disk, all []model.Disk) bool {
	for i, w := range a.wiped {
		if !has(all, d.FromBMC, w) && fits(d.Bytes, w.Bytes) && !slices.Contains(a.used[d.FromBMC], i) {
			a.used[d.FromBMC] = append(a.used[d.FromBMC], i)
			return true
		}
	}
	return false
}

// has reports whether a disk is one of those that a BMC, or a probe, reported.
func has(all []model.Disk, byBMC bool, w model.Disk) bool {
	return slices.ContainsFunc(all, func(d model.Disk) bool { return d.FromBMC == byBMC && d.Same(w) })
}

// Merged is a new inventory, with the parts that a server did not show while it was off.
func Merged(old *model.ServerFacts, inv *model.Inventory) *model.Inventory {
	if old == nil || old.Inventory == nil || inv == nil {
		return inv
	}
	m, known := *inv, old.Inventory
	if len(m.Processors) == 0 || coarser(inv, known, model.PartProcessors) && len(known.Processors) > 0 {
		m.Processors = known.Processors
		m.Summarized = summarizedAs(known, m.Summarized, model.PartProcessors)
	}
	if len(m.Storages) == 0 || coarser(inv, known, model.PartDrives) && len(drives(known.Storages)) > 0 {
		m.Storages = known.Storages
		m.Summarized = summarizedAs(known, m.Summarized, model.PartDrives)
	}
	m.BootOrder = or(m.BootOrder, known.BootOrder)
	m.NetworkInterfaces = or(m.NetworkInterfaces, known.NetworkInterfaces)
	if len(m.MACAddresses) == 0 {
		m.MACAddresses = known.MACAddresses
	} else if len(m.Problems) > 0 { // a card that was not read has not lost its addresses
		m.MACAddresses = slices.Compact(slices.Sorted(slices.Values(slices.Concat(m.MACAddresses, known.MACAddresses))))
	}
	if m.Manufacturer == "" {
		m.Manufacturer, m.Model = known.Manufacturer, known.Model
	}
	if m.IndicatorLED == "" {
		m.IndicatorLED, m.IndicatorOnOff = known.IndicatorLED, known.IndicatorOnOff
	}
	m.MemoryBytes, m.BIOSVersion = cmp.Or(m.MemoryBytes, known.MemoryBytes), cmp.Or(m.BIOSVersion, known.BIOSVersion)
	return &m
}

func or[E any](read, known []E) []E {
	if len(read) == 0 {
		return known
	}
	return read
}

// coarser reports whether only a summary of a part was read, of which more was known.
func coarser(inv, known *model.Inventory, part string) bool {
	return slices.Contains(inv.Summarized, part) && !slices.Contains(known.Summarized, part)
}

// summarizedAs are the summarized parts once one of them is taken from a known inventory.
func summarizedAs(known *model.Inventory, parts []string, part string) []string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == part })
	if slices.Contains(known.Summarized, part) {
		parts = append(parts, part)
	}
	return parts
}

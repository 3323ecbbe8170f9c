package disks

import (
	"cmp"
	"slices"

	"ingot/model"
)

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
	m.Memory, m.BootOrder = or(m.Memory, known.Memory), or(m.BootOrder, known.BootOrder)
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

// or is the list that was read, or the known one if that is empty.
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

package disks

import (
	"slices"

	"ingot/model"
)

// Merged is a new inventory, with the parts that a server that is off did not
// show taken from what was known.
func Merged(old *model.ServerFacts, inv *model.Inventory) *model.Inventory {
	if old == nil || old.Inventory == nil || inv == nil {
		return inv
	}
	m, known := *inv, old.Inventory
	keepWhole(&m, inv, known)
	if len(m.Memory) == 0 {
		m.Memory = known.Memory
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = known.MemoryBytes
	}
	if len(m.NetworkInterfaces) == 0 {
		m.NetworkInterfaces = known.NetworkInterfaces
	}
	if len(m.MACAddresses) == 0 {
		m.MACAddresses = known.MACAddresses
	} else if len(m.Problems) > 0 { // a card that was not read has not lost its addresses
		m.MACAddresses = united(m.MACAddresses, known.MACAddresses)
	}
	if m.Manufacturer == "" {
		m.Manufacturer, m.Model = known.Manufacturer, known.Model
	}
	if m.IndicatorLED == "" {
		m.IndicatorLED, m.IndicatorOnOff = known.IndicatorLED, known.IndicatorOnOff
	}
	if len(m.BootOrder) == 0 {
		m.BootOrder = known.BootOrder
	}
	if m.BIOSVersion == "" {
		m.BIOSVersion = known.BIOSVersion
	}
	return &m
}

// keepWhole leaves the processors and drives as they were known where none was read, or a
// summary alone.
func keepWhole(m, inv, known *model.Inventory) {
	if len(m.Processors) == 0 || coarser(inv, known, model.PartProcessors) && len(known.Processors) > 0 {
		m.Processors = known.Processors
		m.Summarized = summarizedAs(known, m.Summarized, model.PartProcessors)
	}
	if len(m.Storages) == 0 || coarser(inv, known, model.PartDrives) && len(Drives(known.Storages)) > 0 {
		m.Storages = known.Storages
		m.Summarized = summarizedAs(known, m.Summarized, model.PartDrives)
	}
}

// coarser reports whether of a part only a summary was read, of which more was known.
func coarser(inv, known *model.Inventory, part string) bool {
	return slices.Contains(inv.Summarized, part) && !slices.Contains(known.Summarized, part)
}

// summarizedAs are the parts of which there is but a summary once one of them is taken from
// what was known.
func summarizedAs(known *model.Inventory, parts []string, part string) []string {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == part })
	if slices.Contains(known.Summarized, part) {
		parts = append(parts, part)
	}
	return parts
}

// united are sorted texts of both lists, each once.
func united(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

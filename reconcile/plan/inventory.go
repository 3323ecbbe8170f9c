package plan

import (
	"slices"

	"ingot/model"
)

// merged is a new inventory, with the parts that a server that is off did not
// show taken from what was known.
func merged(old *model.ServerFacts, inv *model.Inventory) *model.Inventory {
	if old == nil || old.Inventory == nil || inv == nil {
		return inv
	}
	m, known := *inv, old.Inventory
	if len(m.Processors) == 0 {
		m.Processors = known.Processors
	}
	if len(m.Memory) == 0 {
		m.Memory = known.Memory
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = known.MemoryBytes
	}
	if len(m.Storages) == 0 {
		m.Storages = known.Storages
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

// united are sorted texts of both lists, each once.
func united(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

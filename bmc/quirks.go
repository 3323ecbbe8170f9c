package bmc

import "strings"

// quirk is how a kind of machine departs from what the others do.
type quirk struct {
	// alwaysMode: forgets the boot mode that is not sent along (B03).
	alwaysMode bool
	// first is the variant of the boot override to start with, "" = the default.
	first string
	// settings are where the settings object is, below the system, when the system
	// does not name it.
	settings []string
	// part is what the system is, if it is a part of a machine though it says otherwise.
	part string
	// clearTarget is the target to leave when an override is cleared, "" = None.
	clearTarget string
}

// quirkRow is one row of the table: a quirk of the machines whose manufacturer,
// model and BMC firmware begin with these, in whatever case. Empty = any.
type quirkRow struct {
	manufacturer, model, firmware string
	quirk                         quirk
}

// quirkTable is searched from the top, and what rows further down say is added.
var quirkTable = []quirkRow{
	{manufacturer: "Supermicro", quirk: quirk{alwaysMode: true}},
	{manufacturer: "Super Micro", quirk: quirk{alwaysMode: true}},
	// iLO answers 400 to target None with Disabled (B05).
	{manufacturer: "HPE", quirk: quirk{clearTarget: "Pxe"}},
	{manufacturer: "Hewlett", quirk: quirk{clearTarget: "Pxe"}},
	{manufacturer: "Lenovo", quirk: quirk{settings: []string{"Pending"}}},
	{manufacturer: "Dell", firmware: "7.", quirk: quirk{settings: []string{"Settings"}}},
	// AMI's MegaRAC takes boot settings for the next boot only there (B04).
	{manufacturer: "AMI", quirk: quirk{settings: []string{"SD"}}},
	{manufacturer: "American Megatrends", quirk: quirk{settings: []string{"SD"}}},
	{manufacturer: "GIGABYTE", quirk: quirk{settings: []string{"SD"}}},
	{manufacturer: "NVIDIA", model: "DGXH100", quirk: quirk{first: variantSettings, settings: []string{"SD"}}},
	{manufacturer: "NVIDIA", model: "DGX H100", quirk: quirk{first: variantSettings, settings: []string{"SD"}}},
	{manufacturer: "NVIDIA", quirk: quirk{settings: []string{"Settings"}}},
	// A BlueField's own BMC shows the DPU as a physical system that can be reset.
	{model: "BlueField", quirk: quirk{part: "a DPU"}},
}

// anySettings are the settings objects to try where nothing is known.
var anySettings = []string{"SD", "Settings", "Pending"}

// quirkOf returns what the table says of a machine.
func quirkOf(manufacturer, model, firmware string) quirk {
	var q quirk
	for _, row := range quirkTable {
		if !begins(manufacturer, row.manufacturer) || !begins(model, row.model) || !begins(firmware, row.firmware) {
			continue
		}
		q.alwaysMode = q.alwaysMode || row.quirk.alwaysMode
		q.settings = append(q.settings, row.quirk.settings...)
		if q.first == "" {
			q.first = row.quirk.first
		}
		if q.part == "" {
			q.part = row.quirk.part
		}
		if q.clearTarget == "" {
			q.clearTarget = row.quirk.clearTarget
		}
	}
	return q
}

func begins(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

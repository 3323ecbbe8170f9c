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

	behaviour string // what such a machine does
	evidence  string // where that was seen
	test      string // that holds us to it
}

// quirkTable is searched from the top, and what rows further down say is added.
var quirkTable = []quirkRow{
	{
		manufacturer: "Supermicro", quirk: quirk{alwaysMode: true},
		behaviour: "forgets the boot mode that is not sent with an override", evidence: "Redfishtool issue 106", test: "TestQuirks",
	},
	{
		manufacturer: "Super Micro", quirk: quirk{alwaysMode: true},
		behaviour: "is how older firmware of Supermicro writes its name", evidence: "Redfishtool issue 106", test: "TestQuirks",
	},
	{
		manufacturer: "HPE", quirk: quirk{clearTarget: "Pxe"},
		behaviour: "answers 400 to target None with Disabled", evidence: "metal-operator issue 998", test: "TestClearBootOverride",
	},
	{
		manufacturer: "Hewlett", quirk: quirk{clearTarget: "Pxe"},
		behaviour: "is how older firmware of HPE writes its name", evidence: "metal-operator issue 998", test: "TestQuirks",
	},
	{
		manufacturer: "Lenovo", quirk: quirk{settings: []string{"Pending"}},
		behaviour: "has its settings object at Pending", evidence: "recording lenovo-sr670v2-xcc-2.83", test: "TestBootOnce",
	},
	{
		manufacturer: "Dell", firmware: "7.", quirk: quirk{settings: []string{"Settings"}},
		behaviour: "has its settings object at Settings, from iDRAC 9 firmware 7 on", evidence: "reports of users", test: "TestQuirks",
	},
	{
		manufacturer: "AMI", quirk: quirk{settings: []string{"SD"}},
		behaviour: "takes boot settings for the next boot at SD alone", evidence: "Redfish-Tacklebox issue 144", test: "TestBootOnce",
	},
	{
		manufacturer: "American Megatrends", quirk: quirk{settings: []string{"SD"}},
		behaviour: "is AMI, by its whole name", evidence: "Redfish-Tacklebox issue 144", test: "TestQuirks",
	},
	{
		manufacturer: "GIGABYTE", quirk: quirk{settings: []string{"SD"}},
		behaviour: "has AMI's MegaRAC", evidence: "Redfish-Tacklebox issue 144", test: "TestQuirks",
	},
	{
		manufacturer: "NVIDIA", model: "DGXH100", quirk: quirk{first: variantSettings, settings: []string{"SD"}},
		behaviour: "has AMI's MegaRAC, lists no boot targets and takes them at SD", evidence: "reports of users", test: "TestQuirks",
	},
	{
		manufacturer: "NVIDIA", model: "DGX H100", quirk: quirk{first: variantSettings, settings: []string{"SD"}},
		behaviour: "is the same, with a blank", evidence: "reports of users", test: "TestQuirks",
	},
	{
		manufacturer: "NVIDIA", quirk: quirk{settings: []string{"Settings"}},
		behaviour: "has its settings object at Settings", evidence: "recording nvidia-gh200-openbmc", test: "TestQuirks",
	},
	{
		model: "BlueField", quirk: quirk{part: "a DPU"},
		behaviour: "shows the DPU as a physical system that can be reset", evidence: "recording nvidia-bluefield3-dpu-openbmc",
		test: "TestDiscoverFindsMachines",
	},
}

// anySettings are the settings objects to try where nothing is known.
var anySettings = []string{"SD", "Settings", "Pending"}

func quirkOf(manufacturer, model, firmware string) quirk {
	var q quirk
	for _, row := range rowsOf(manufacturer, model, firmware) {
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

// rowsOf returns the rows of the table that a machine is meant by.
func rowsOf(manufacturer, model, firmware string) (rows []quirkRow) {
	for _, row := range quirkTable {
		if begins(manufacturer, row.manufacturer) && begins(model, row.model) && begins(firmware, row.firmware) {
			rows = append(rows, row)
		}
	}
	return rows
}

func begins(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

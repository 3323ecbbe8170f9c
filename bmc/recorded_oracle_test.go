package bmc_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/bmc/sim/recorded"
	"ingot/model"
)

// recordedSystem is what a recording holds of one system, found by looking at its files
// alone.
type recordedSystem struct {
	uri      string
	why      string // it is no server, "" = it is one
	uuid     string // canonical, "" = none that tells it from others
	serial   string
	power    string
	override bool

	processors, modules, drives, volumes int
	memory                               bool // it says how much it has
	macs                                 []string
	unread                               []string // what is linked to and was not recorded
}

func (r *recording) systems() ([]*recordedSystem, string) {
	uri := recorded.LinkOf(r.Resource("/redfish/v1"), "Systems")
	if uri == "" {
		return nil, "the service root links to no systems"
	}
	collection := r.Resource(uri)
	members, ok := collection["Members"].([]any)
	if !ok || recorded.Key(recorded.Text(collection["@odata.id"])) != recorded.Key(uri) && collection["Members"] == nil {
		return nil, "the collection of systems is not recorded"
	}
	var all []*recordedSystem
	for _, m := range members {
		member, _ := m.(map[string]any)
		if at := recorded.Text(member["@odata.id"]); at != "" {
			all = append(all, r.system(at))
		}
	}
	slices.SortFunc(all, func(a, b *recordedSystem) int { return strings.Compare(a.uri, b.uri) })
	return all, ""
}

func (r *recording) system(uri string) *recordedSystem {
	s := &recordedSystem{uri: uri}
	sys := r.Resource(uri)
	if sys == nil {
		s.unread = append(s.unread, uri)
		return s
	}
	kind := recorded.Text(sys["SystemType"])
	switch {
	case recorded.Field(recorded.Field(sys, "Actions"), "#ComputerSystem.Reset") == nil:
		s.why = "reset"
	case slices.Contains([]string{"Virtual", "OS", "VirtuallyPartitioned", "DPU"}, kind):
		s.why = kind
	case strings.HasPrefix(recorded.Text(sys["Model"]), "BlueField"):
		s.why = "DPU"
	}
	if id, ok := model.ParseUUID(strings.TrimSpace(recorded.Text(sys["UUID"]))); ok && id.IsUsable() {
		s.uuid = id.String()
	}
	s.serial, s.power = strings.TrimSpace(recorded.Text(sys["SerialNumber"])), recorded.Text(sys["PowerState"])
	_, s.override = recorded.Field(sys, "Boot")["BootSourceOverrideTarget"]
	s.processors = r.count(s, recorded.LinkOf(sys, "Processors"), func(map[string]any) bool { return true })
	if n, ok := number(recorded.Field(sys, "ProcessorSummary")["Count"]); ok && s.processors == 0 {
		s.processors = int(n)
	}
	s.modules = r.count(s, recorded.LinkOf(sys, "Memory"), func(m map[string]any) bool { n, _ := number(m["CapacityMiB"]); return n > 0 })
	total, _ := number(recorded.Field(sys, "MemorySummary")["TotalSystemMemoryGiB"])
	s.memory = total > 0 || s.modules > 0
	r.storage(s, sys)
	r.cards(s, sys)
	return s
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func (r *recording) members(s *recordedSystem, uri string) map[string]map[string]any {
	if uri == "" {
		return nil
	}
	collection := r.Resource(uri)
	list, ok := collection["Members"].([]any)
	if !ok {
		s.unread = append(s.unread, uri)
	}
	return r.linked(s, list)
}

func (r *recording) linked(s *recordedSystem, list []any) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, l := range list {
		link, _ := l.(map[string]any)
		uri := recorded.Text(link["@odata.id"])
		m := r.Resource(uri)
		switch {
		case uri == "":
		case m == nil && len(link) > 1:
			all[uri] = link
		case m == nil:
			s.unread = append(s.unread, uri)
		default:
			all[uri] = m
		}
	}
	return all
}

func present(m map[string]any) bool {
	return recorded.Text(recorded.Field(m, "Status")["State"]) != "Absent"
}

func (r *recording) count(s *recordedSystem, uri string, is func(map[string]any) bool) (n int) {
	for _, m := range r.members(s, uri) {
		if present(m) && is(m) {
			n++
		}
	}
	return n
}

func (r *recording) storage(s *recordedSystem, sys map[string]any) {
	for _, sub := range r.members(s, recorded.LinkOf(sys, "Storage")) {
		drives, _ := sub["Drives"].([]any)
		for _, d := range r.linked(s, drives) {
			if present(d) {
				s.drives++
			}
		}
		s.volumes += len(r.members(s, recorded.LinkOf(sub, "Volumes")))
	}
	if s.drives > 0 {
		return
	}
	for _, sub := range r.members(s, recorded.LinkOf(sys, "SimpleStorage")) {
		devices, _ := sub["Devices"].([]any)
		for _, d := range devices {
			if device, ok := d.(map[string]any); ok && present(device) {
				s.drives++
			}
		}
	}
}

func (r *recording) cards(s *recordedSystem, sys map[string]any) {
	found := make(map[string]bool)
	note := func(v any) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, v := range list {
			if mac, ok := model.StationMAC(recorded.Text(v)); ok {
				found[mac] = true
			}
		}
	}
	for _, nic := range r.members(s, recorded.LinkOf(sys, "EthernetInterfaces")) {
		if present(nic) && recorded.Field(recorded.Field(nic, "Links"), "HostInterface") == nil && !strings.EqualFold(recorded.Text(nic["Id"]), "ToManager") {
			note(nic["MACAddress"])
			note(nic["PermanentMACAddress"])
		}
	}
	for _, card := range r.members(s, recorded.LinkOf(sys, "NetworkInterfaces")) {
		r.card(card, note)
	}
	if len(found) == 0 { // the cards of the chassis
		links, _ := recorded.Field(sys, "Links")["Chassis"].([]any)
		for _, chassis := range r.linked(new(recordedSystem), links) {
			for _, card := range r.members(new(recordedSystem), recorded.LinkOf(chassis, "NetworkAdapters")) {
				r.card(card, note)
			}
		}
	}
	s.macs = slices.Sorted(maps.Keys(found))
}

func (r *recording) card(card map[string]any, note func(any)) {
	for _, f := range r.members(new(recordedSystem), recorded.LinkOf(card, "NetworkDeviceFunctions")) {
		note(recorded.Field(f, "Ethernet")["MACAddress"])
	}
}

func (s *recordedSystem) missing(inv *model.Inventory) (all []string) {
	count := func(what string, want, got int) {
		if got != want {
			all = append(all, fmt.Sprintf("%d of %d %s", got, want, what))
		}
	}
	count("processors", s.processors, len(inv.Processors))
	count("memory modules", s.modules, len(inv.Memory))
	drives, volumes := 0, 0
	for _, st := range inv.Storages {
		drives, volumes = drives+len(st.Drives), volumes+len(st.Volumes)
	}
	count("drives", s.drives, drives)
	count("volumes", s.volumes, volumes)
	if s.memory != (inv.MemoryBytes > 0) {
		all = append(all, fmt.Sprintf("%d bytes of memory", inv.MemoryBytes))
	}
	for _, mac := range s.macs {
		if !slices.Contains(inv.MACs(), mac) {
			all = append(all, "MAC address "+mac)
		}
	}
	for _, uri := range s.unread {
		if !named(inv.Problems, uri) {
			all = append(all, "a word on "+uri+", which cannot be read")
		}
	}
	return all
}

func named(texts []string, uri string) bool {
	return slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(strings.ToLower(s), strings.ToLower(strings.TrimRight(uri, "/")))
	})
}

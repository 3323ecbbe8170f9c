package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	systemSchema   = "ComputerSystem.v1_20_0"
	settingsSchema = "Settings.v1_3_5"
)

// systemsNode are the machines behind a BMC.
func systemsNode(k *personality) *node {
	system := &node{
		schema: systemSchema, get: getSystem, set: systemSetters(k), conditional: k.needsIfMatch,
		child: map[string]*node{
			"Processors":         collection("Processor", "Processors", processorIDs, &node{schema: "Processor.v1_18_0", get: getProcessor}),
			"Memory":             collection("Memory", "Memory", dimmIDs, &node{schema: "Memory.v1_17_0", get: getMemory}),
			"EthernetInterfaces": collection("EthernetInterface", "Ethernet Interfaces", nicIDs, &node{schema: "EthernetInterface.v1_9_0", get: getNIC}),
			"NetworkInterfaces":  collection("NetworkInterface", "Network Interfaces", fixed(cardID), &node{schema: "NetworkInterface.v1_2_1", get: getNetworkInterface}),
			k.storagePath():      collection("Storage", "Storage", fixed("1"), storageNode()),
			"SimpleStorage":      collection("SimpleStorage", "Simple Storage", fixed("1"), &node{schema: "SimpleStorage.v1_3_1", get: getSimpleStorage}),
			"Bios":               {schema: "Bios.v1_2_0", get: getBios},
			"SecureBoot":         {schema: "SecureBoot.v1_1_0", get: getSecureBoot},
		},
	}
	k.keepWhatItHas(system.child)
	system.child["Actions"] = &node{child: map[string]*node{"ComputerSystem.Reset": {post: resetSystem}}}
	if k.has("SystemVirtualMedia") {
		system.child["VirtualMedia"] = mediaNode()
	}
	if k.boot.order != orderNone {
		system.child["BootOptions"] = collection("BootOption", "Boot Options", fixed(bootReferences(false)...), &node{
			schema: "BootOption.v1_0_4", get: getBootOption, set: map[string]setter{"BootOptionEnabled": enableBootOption},
		})
	}
	if k.boot.settings != "" {
		system.child[k.boot.settings] = &node{
			schema: systemSchema, get: getSettings,
			set: map[string]setter{"Boot": setFutureBoot}, conditional: k.needsIfMatch || k.boot.rule == overrideInSettings,
		}
	}
	if k.resetForm != resetsInAction {
		system.child["ResetActionInfo"] = &node{schema: "ActionInfo.v1_3_0", get: getResetInfo}
	}
	systems := collection("ComputerSystem", "Computer Systems", systemIDs, system)
	if k.board != "" {
		systems.child = map[string]*node{k.board: boardNode()}
	}
	return systems
}

// keepWhatItHas removes the resources that the vendor lacks.
func (k *personality) keepWhatItHas(children map[string]*node) {
	maps.DeleteFunc(children, func(name string, _ *node) bool { return !k.has(name) })
}

// systemSetters are the properties of a system that can be written.
func systemSetters(k *personality) map[string]setter {
	set := map[string]setter{"Boot": setBoot, "AssetTag": setAssetTag, "IndicatorLED": setIndicator, "LocationIndicatorActive": setLocator}
	maps.DeleteFunc(set, func(name string, _ setter) bool { return !k.has(name) })
	return set
}

func systemIDs(v view) []string {
	if v.bmc.faults.has(FaultNoSystems) {
		return nil
	}
	ids := make([]string, len(v.bmc.servers), len(v.bmc.servers)+1)
	for i, s := range v.bmc.servers {
		ids[i] = s.id
	}
	if board := v.bmc.rack.kind.board; board != "" {
		ids = append(ids, board)
	}
	return ids
}

func getSystem(v view) object {
	s, k := v.server(), v.bmc.rack.kind
	hw := s.build.Hardware
	power := s.reportedPower()
	boot := s.bootObject()
	o := object{
		"Id": s.place(), "Name": string(s.name), "Description": "Simulated machine", "SystemType": "Physical",
		"Manufacturer": k.manufacturer, "Model": s.model, "SKU": k.sku, "SerialNumber": s.serial,
		"PartNumber": k.sku, "BiosVersion": k.bios, "HostName": "", "PowerState": string(power), "Status": status(),
		"Boot": boot,
		"ProcessorSummary": object{
			"Count": hw.Sockets, "Model": hw.CPUModel, "CoreCount": hw.Sockets * hw.Cores,
			"LogicalProcessorCount": hw.Sockets * hw.threads(), "Status": status(),
		},
		"MemorySummary":      object{"TotalSystemMemoryGiB": float64(s.memoryBytes()) / (1 << 30), "Status": status()},
		"Processors":         v.link("Processors"),
		"Memory":             v.link("Memory"),
		"EthernetInterfaces": v.link("EthernetInterfaces"),
		"NetworkInterfaces":  v.link("NetworkInterfaces"),
		"Storage":            v.link(k.storagePath()),
		"SimpleStorage":      v.link("SimpleStorage"),
		"Bios":               v.link("Bios"),
		"SecureBoot":         v.link("SecureBoot"),
		"Links": object{
			"Chassis":   []object{link(root + "/Chassis/" + s.chassisID())},
			"ManagedBy": []object{link(root + "/Managers/" + k.manager)},
		},
		"Actions": object{"#ComputerSystem.Reset": v.resetAction()},
	}
	if k.has("SystemVirtualMedia") {
		o["VirtualMedia"] = v.link("VirtualMedia")
	}
	if k.boot.settings != "" {
		o["@Redfish.Settings"] = object{
			"@odata.type": "#" + settingsSchema + ".Settings", "SettingsObject": v.link(k.boot.settings), "SupportedApplyTimes": []string{"OnReset"},
		}
	}
	s.describe(o)
	return k.trim(o)
}

// describe adds to a ComputerSystem what changes.
func (s resource) describe(o object) {
	if id := s.shownUUID(); id != "" {
		o["UUID"] = id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := s.shown()
	o["AssetTag"], o["IndicatorLED"], o["LocationIndicatorActive"] = shown.assetTag, shown.indicator, shown.indicator != "Off"
	o["BootProgress"] = object{"LastState": s.progress}
	if !s.lastReset.IsZero() {
		o["LastResetTime"] = redfishTime(s.lastReset)
	}
}

// shownUUID is the UUID as the BMC gives it, "" for none.
func (s resource) shownUUID() string {
	switch {
	case s.faults.has(FaultUUIDMissing) || s.bmc.faults.has(FaultUUIDMissing):
		return ""
	case s.faults.has(FaultUUIDZero):
		return "00000000-0000-0000-0000-000000000000"
	case s.faults.has(FaultUUIDSwapped):
		return s.swappedUUID()
	}
	switch s.rack().kind.uuid {
	case uuidUpper, uuidMAC:
		return strings.ToUpper(s.uuid)
	case uuidSwapped:
		return littleEndian(s.uuid)
	case uuidLower:
	}
	return s.uuid
}

// littleEndian returns a UUID with the bytes of its first three groups the other way round.
func littleEndian(id string) string {
	u, err := uuid.Parse(id)
	if err != nil {
		return id // Options.UUIDs may be anything
	}
	slices.Reverse(u[0:4])
	slices.Reverse(u[4:6])
	slices.Reverse(u[6:8])
	return u.String()
}

// swappedUUID is the UUID of another machine.
func (s resource) swappedUUID() string {
	if args, _ := s.faults.get(FaultUUIDSwapped); args.UUID != "" {
		return args.UUID
	}
	all := s.rack().servers
	return all[(slices.Index(all, s.Server)+1)%len(all)].uuid
}

func redfishTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func getBios(v view) object {
	mode := "Uefi"
	if !slices.Contains(v.server().build.Modes, "UEFI") {
		mode = "Bios"
	}
	return object{
		"Id": "Bios", "Name": "BIOS Configuration",
		"Attributes": object{"BootMode": mode, "ProcVirtualization": "Enabled", "SriovGlobalEnable": "Enabled", "PxeDev1EnDis": "Enabled"},
	}
}

func getSecureBoot(v view) object {
	on, now := v.server().faults.has(FaultSecureBoot), "Disabled"
	if on {
		now = "Enabled"
	}
	return object{
		"Id": "SecureBoot", "Name": "UEFI Secure Boot", "SecureBootEnable": on, "SecureBootCurrentBoot": now, "SecureBootMode": "UserMode",
	}
}

// mediaNode are the drives that an image can be put into from afar.
func mediaNode() *node {
	return collection("VirtualMedia", "Virtual Media", fixed("1"), &node{schema: "VirtualMedia.v1_6_2", get: func(v view) object {
		return object{
			"Id": v.id(), "Name": "Virtual CD", "MediaTypes": []string{"CD", "DVD"}, "Inserted": false, "ConnectedVia": "NotConnected",
			"Image": nil, "WriteProtected": true,
		}
	}})
}

// boardNode is a system that is a part of another: it has a state of its own, and can
// neither be booted nor reset.
func boardNode() *node {
	gpus := func(v view) []string { return gpuIDs(v.bmc.rack.kind.hardware.GPUs) }
	return &node{
		schema: systemSchema,
		get: func(v view) object {
			k := v.bmc.rack.kind
			id := v.bmc.rack.identity(string(v.bmc.name) + "/" + k.board)
			return object{
				"Id": k.board, "Name": "Baseboard", "SystemType": "Physical", "Manufacturer": k.manufacturer, "Model": k.hardware.GPUModel,
				"SerialNumber": id.serial(), "UUID": id.uuid(), "PowerState": string(v.bmc.servers[0].Power()), "Status": status(),
				"Processors": v.link("Processors"), "Links": object{"ManagedBy": []object{link(root + "/Managers/" + k.manager)}},
			}
		},
		child: map[string]*node{"Processors": collection("Processor", "Accelerators", gpus, &node{
			schema: "Processor.v1_18_0", get: func(v view) object { return gpu(v.id(), v.bmc.rack.kind.hardware) },
		})},
	}
}

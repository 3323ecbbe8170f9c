package sim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ingot/bmc/sim/internal/delay"
)

// systemsNode are the machines behind a BMC.
func systemsNode(k *personality) *node {
	reset := "Actions/ComputerSystem.Reset"
	system := &node{
		schema: "ComputerSystem.v1_20_0", get: getSystem,
		set: map[string]setter{"Boot": setBoot, "AssetTag": setAssetTag, "IndicatorLED": setIndicator, "LocationIndicatorActive": setLocator},
		child: map[string]*node{
			"Processors": collection("Processor", "Processors", processorIDs, &node{schema: "Processor.v1_18_0", get: getProcessor}),
			"Memory":     collection("Memory", "Memory", dimmIDs, &node{schema: "Memory.v1_17_0", get: getMemory}),
			"EthernetInterfaces": collection("EthernetInterface", "Ethernet Interfaces", nicIDs,
				&node{schema: "EthernetInterface.v1_9_0", get: getNIC}),
			"Storage": collection("Storage", "Storage", fixed("1"), storageNode()),
			"Bios":    {schema: "Bios.v1_2_0", get: getBios},
			"BootOptions": collection("BootOption", "Boot Options", fixed("Boot0001", "Boot0002"),
				&node{schema: "BootOption.v1_0_4", get: getBootOption}),
			"Actions": {child: map[string]*node{"ComputerSystem.Reset": {post: resetSystem}}},
			k.settings: {
				schema: "ComputerSystem.v1_20_0", get: getSettings,
				set: map[string]setter{"Boot": setFutureBoot}, conditional: k.rule == overrideInSettings,
			},
		},
	}
	if k.resetByInfo {
		system.child["ResetActionInfo"] = &node{schema: "ActionInfo.v1_3_0", get: getResetInfo(reset)}
	}
	return collection("ComputerSystem", "Computer Systems", systemIDs, system)
}

func storageNode() *node {
	return &node{
		schema: "Storage.v1_15_0", get: getStorage,
		child: map[string]*node{
			"Drives":  {child: nil, ids: driveIDs, member: &node{schema: "Drive.v1_17_0", get: getDrive}},
			"Volumes": collection("Volume", "Volumes", volumeIDs, &node{schema: "Volume.v1_9_0", get: getVolume}),
		},
	}
}

func systemIDs(v view) []string {
	if v.bmc.faults.has(FaultNoSystems) {
		return nil
	}
	ids := make([]string, len(v.bmc.servers))
	for i, s := range v.bmc.servers {
		ids[i] = s.id
	}
	return ids
}

// numbered are IDs with a prefix and a number from 1.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(i+1)
	}
	return ids
}

func processorIDs(v view) []string { return numbered("CPU", v.server().build.Hardware.Sockets) }
func dimmIDs(v view) []string      { return numbered("DIMM", v.server().build.Hardware.DIMMs) }
func nicIDs(v view) []string       { return numbered("NIC", v.server().build.NICs) }
func driveIDs(v view) []string     { return numbered("Disk", len(v.server().build.Hardware.Drives)) }

// volumeIDs is one volume, on the first disk if there is any.
func volumeIDs(v view) []string {
	if len(v.server().build.Hardware.Drives) == 0 {
		return nil
	}
	return []string{"1"}
}

// index is the number in an ID that numbered made, from 0.
func (v view) index() int {
	n, _ := strconv.Atoi(strings.TrimLeftFunc(v.id(), unicode.IsLetter))
	return n - 1
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
		"Storage":            v.link("Storage"),
		"Bios":               v.link("Bios"),
		"Links": object{
			"Chassis":   []object{link(root + "/Chassis/" + s.chassisID())},
			"ManagedBy": []object{link(root + "/Managers/" + k.manager)},
		},
		"Actions":           object{"#ComputerSystem.Reset": v.resetAction()},
		"@Redfish.Settings": object{"@odata.type": "#Settings.v1_3_5.Settings", "SettingsObject": v.link(k.settings), "SupportedApplyTimes": []string{"OnReset"}},
	}
	s.describe(o)
	return o
}

// describe adds to a ComputerSystem what changes.
func (s *Server) describe(o object) {
	switch {
	case s.faults.has(FaultUUIDMissing):
	case s.faults.has(FaultUUIDZero):
		o["UUID"] = "00000000-0000-0000-0000-000000000000"
	case s.faults.has(FaultUUIDSwapped):
		o["UUID"] = s.swappedUUID()
	case s.rack().kind.upperUUID:
		o["UUID"] = strings.ToUpper(s.uuid)
	default:
		o["UUID"] = s.uuid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o["AssetTag"], o["LocationIndicatorActive"] = s.assetTag, s.indicator != "Off"
	if !s.rack().kind.noIndicatorLED {
		o["IndicatorLED"] = s.indicator
	}
	o["BootProgress"] = object{"LastState": s.progress}
	if !s.lastReset.IsZero() {
		o["LastResetTime"] = redfishTime(s.lastReset)
	}
}

func redfishTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// bootObject is ComputerSystem.Boot.
func (s *Server) bootObject() object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{
		"BootSourceOverrideEnabled":                         s.override.Enabled,
		"BootSourceOverrideTarget":                          s.override.Target,
		"BootSourceOverrideMode":                            s.override.Mode,
		"HttpBootUri":                                       s.override.HTTPURI,
		"BootSourceOverrideEnabled@Redfish.AllowableValues": overrideEnabled,
		"BootSourceOverrideTarget@Redfish.AllowableValues":  s.build.Targets,
		"BootSourceOverrideMode@Redfish.AllowableValues":    s.build.Modes,
		"BootOrder":   bootReferences(s.networkFirst),
		"BootOptions": link(s.URI() + "/BootOptions"),
	}
}

// The allowed values of a boot override that all vendors share.
var (
	overrideEnabled = []string{"Disabled", "Once", "Continuous"}
	overrideModes   = []string{"UEFI", "Legacy"}
)

// resetAction is the action that resets the resource.
func (v view) resetAction() object {
	k := v.bmc.rack.kind
	action := object{"target": v.path + "/Actions/ComputerSystem.Reset"}
	if k.resetByInfo {
		action["@Redfish.ActionInfo"] = v.path + "/ResetActionInfo"
	} else {
		action["ResetType@Redfish.AllowableValues"] = k.resetTypes
	}
	return action
}

func getResetInfo(action string) func(view) object {
	return func(v view) object {
		return object{"Id": "ResetActionInfo", "Name": "Parameters of " + action, "Parameters": []object{{
			"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": v.bmc.rack.kind.resetTypes,
		}}}
	}
}

func resetSystem(v view, sent object) reply {
	s := v.server()
	const action = "ComputerSystem.Reset"
	value, problem := parameter(action, sent, "ResetType", v.bmc.rack.kind.resetTypes)
	if problem != nil {
		return failure(http.StatusBadRequest, problem)
	}
	if args, late := s.faults.use(FaultResetLate); late {
		s.rack().start(func(ctx context.Context) {
			if delay.Wait(ctx, orDefault(args.Delay, 2*time.Second)) {
				s.reset(value, CauseRedfish)
			}
		})
		return reply{status: http.StatusNoContent}
	}
	switch s.reset(value, CauseRedfish) {
	case refusedBusy:
		return failure(http.StatusConflict, newMessage(msgBusy))
	case refusedState:
		return failure(http.StatusConflict, newMessage(msgState, action))
	}
	return s.loseAnswer(reply{status: http.StatusNoContent})
}

// loseAnswer makes of the answer to a reset that was carried out what the faults make
// of it.
func (s *Server) loseAnswer(rep reply) reply {
	if _, fails := s.faults.use(FaultResetFails); fails {
		return failure(http.StatusInternalServerError, newMessage(msgInternalError))
	}
	if _, dropped := s.faults.use(FaultResetDropped); dropped {
		rep.lost = func(context.Context) {}
	}
	if cleared := s.faults.until(FaultResetHangs); cleared != nil {
		s.faults.use(FaultResetHangs)
		rep.lost = func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-cleared:
			}
		}
	}
	return rep
}

// swappedUUID is the UUID of another machine.
func (s *Server) swappedUUID() string {
	if args, _ := s.faults.get(FaultUUIDSwapped); args.UUID != "" {
		return args.UUID
	}
	all := s.rack().servers
	return all[(slices.Index(all, s)+1)%len(all)].uuid
}

// parameter returns the one parameter that an action has.
func parameter(action string, sent object, name string, allowed []string) (string, *message) {
	for _, key := range sortedKeys(sent) {
		if key != name {
			return "", newMessage(msgParameterUnknown, action, key)
		}
	}
	value, given := sent[name]
	if !given {
		return "", newMessage(msgParameterMissing, action, name)
	}
	s, _ := value.(string)
	if !slices.Contains(allowed, s) {
		return "", newMessage(msgParameterValue, fmt.Sprint(value), name, action)
	}
	return s, nil
}

// nextOverride is the override that the properties sent make of now.
func (s *Server) nextOverride(now bootOverride, sent object) (bootOverride, *message) {
	k := s.rack().kind
	next := now
	fields := map[string]struct {
		to      *string
		allowed []string
	}{
		"BootSourceOverrideEnabled": {&next.Enabled, overrideEnabled},
		"BootSourceOverrideTarget":  {&next.Target, s.build.Targets},
		"BootSourceOverrideMode":    {&next.Mode, s.build.Modes},
	}
	for _, name := range sortedKeys(sent) {
		if name == "HttpBootUri" {
			uri, problem := bootURI(sent[name])
			if problem != nil {
				return now, problem
			}
			if uri != "" && s.build.ByDHCP {
				return now, newMessage(msgPropertyReadOnly, name).about("#/Boot/" + name)
			}
			next.HTTPURI = uri
			continue
		}
		f, known := fields[name]
		if !known {
			return now, newMessage(msgPropertyUnknown, name).about("#/Boot/" + name)
		}
		chosen, problem := oneOf(name, sent[name], f.allowed)
		if problem != nil {
			return now, problem.about("#/Boot/" + name)
		}
		*f.to = chosen
	}
	_, modeSent := sent["BootSourceOverrideMode"]
	switch {
	case !modeSent && s.faults.has(FaultOverrideNeedsMode):
		return now, newMessage(msgPropertyMissing, "BootSourceOverrideMode").about("#/Boot/BootSourceOverrideMode")
	case !modeSent && k.rule == overrideForgetsMode:
		next.Mode = s.modeOr("Legacy")
	case k.rule == overrideKeepsTarget && sent["BootSourceOverrideEnabled"] == "Disabled" && sent["BootSourceOverrideTarget"] == "None":
		return now, newMessage(msgPropertyConflict, "BootSourceOverrideEnabled", "BootSourceOverrideTarget").about("#/Boot")
	}
	return next, nil
}

// bootURI returns where UEFI HTTP boot is to begin: a URL, or "" or null for where
// DHCP says.
func bootURI(value any) (string, *message) {
	if value == nil {
		return "", nil
	}
	uri, problem := text("HttpBootUri", value)
	if problem == nil && (len(uri) > 2048 || uri != "" && checkBootURL(uri) != nil) {
		problem = newMessage(msgPropertyValue, "that is no URL of HTTP", "HttpBootUri")
	}
	if problem != nil {
		return "", problem.about("#/Boot/HttpBootUri")
	}
	return uri, nil
}

func setAssetTag(v view, value any) *message {
	tag, problem := text("AssetTag", value)
	switch {
	case problem != nil:
		return problem
	case len(tag) > 256:
		return newMessage(msgPropertyValue, tag[:32]+"…", "AssetTag").about("#/AssetTag")
	}
	s := v.server()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assetTag = tag
	return nil
}

// setIndicator sets the light that tells the machine from its neighbours, by the older of
// its two properties.
func setIndicator(v view, value any) *message {
	if v.bmc.rack.kind.noIndicatorLED {
		return newMessage(msgPropertyUnknown, "IndicatorLED").about("#/IndicatorLED")
	}
	led, problem := oneOf("IndicatorLED", value, []string{"Lit", "Blinking", "Off"})
	if problem == nil {
		v.server().indicate(led)
	}
	return problem
}

// setLocator sets it by the newer one.
func setLocator(v view, value any) *message {
	active, ok := value.(bool)
	s := v.server()
	switch {
	case !ok:
		return newMessage(msgPropertyType, string(mustJSON(value)), "LocationIndicatorActive").about("#/LocationIndicatorActive")
	case !active:
		s.indicate("Off")
	case s.Indicator() == "Off":
		s.indicate("Lit")
	}
	return nil
}

func (s *Server) indicate(led string) {
	if s.faults.has(FaultIndicatorNotKept) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indicator = led
	s.note("indicator " + led)
}

func getProcessor(v view) object {
	hw := v.server().build.Hardware
	return object{
		"Id": v.id(), "Name": v.id(), "Socket": "CPU " + strconv.Itoa(v.index()+1), "ProcessorType": "CPU",
		"ProcessorArchitecture": "x86", "InstructionSet": "x86-64", "Manufacturer": hw.CPUVendor, "Model": hw.CPUModel,
		"ProcessorId": object{"VendorId": hw.CPUID}, "MaxSpeedMHz": hw.MHz, "TotalCores": hw.Cores, "TotalThreads": hw.threads(), "Status": status(),
	}
}

func getMemory(v view) object {
	s := v.server()
	hw := s.build.Hardware
	return object{
		"Id": v.id(), "Name": v.id(), "CapacityMiB": hw.DIMMBytes >> 20, "MemoryType": "DRAM", "MemoryDeviceType": "DDR5",
		"OperatingSpeedMhz": hw.DIMMMHz, "AllowedSpeedsMHz": []int{hw.DIMMMHz}, "ErrorCorrection": "MultiBitECC", "BaseModuleType": "RDIMM",
		"Manufacturer": hw.DIMMVendor, "PartNumber": hw.DIMMPart, "SerialNumber": s.dimmSerial(v.index()),
		"DeviceLocator": dimmName(v.index()), "Status": status(),
	}
}

func getNIC(v view) object {
	s := v.server()
	nic := object{
		"Id": v.id(), "Name": v.id(), "Description": s.build.Hardware.NICModel, "InterfaceEnabled": true, "LinkStatus": "LinkUp",
		"SpeedMbps": s.build.Hardware.NICMbps, "FullDuplex": true, "MTUSize": 1500, "Status": status(),
	}
	if !s.faults.has(FaultMACsHidden) {
		mac := strings.ToUpper(s.MAC(v.index()))
		nic["MACAddress"], nic["PermanentMACAddress"] = mac, mac
	}
	return nic
}

func getStorage(v view) object {
	k := v.bmc.rack.kind
	drives := make([]object, 0, 2)
	for _, id := range driveIDs(v) {
		drives = append(drives, v.link("Drives/"+id))
	}
	return object{
		"Id": v.id(), "Name": "Disk Controller", "Drives": drives, "Drives@odata.count": len(drives), "Volumes": v.link("Volumes"),
		"StorageControllers": []object{{
			"@odata.id": v.path + "#/StorageControllers/0", "MemberId": "0", "Name": "Controller", "Manufacturer": k.manufacturer,
			"SpeedGbps": 12, "SupportedDeviceProtocols": []string{"NVMe", "SATA"}, "Status": status(),
		}},
		"Status": status(),
	}
}

func getDrive(v view) object {
	s := v.server()
	d := s.build.Hardware.Drives[v.index()]
	o := object{
		"Id": v.id(), "Name": d.Name, "CapacityBytes": d.Bytes, "MediaType": d.Media, "Protocol": d.Protocol,
		"Manufacturer": d.Vendor, "Model": d.Model, "SerialNumber": s.diskSerial(v.index()), "BlockSizeBytes": 512,
		"FailurePredicted": false, "Status": status(), "Links": object{},
	}
	if d.rotational() {
		o["RotationSpeedRPM"] = 7200
	}
	return o
}

func getVolume(v view) object {
	d := v.server().build.Hardware.Drives[0]
	storage := v.path[:strings.LastIndex(v.path, "/Volumes")]
	return object{
		"Id": v.id(), "Name": "System", "CapacityBytes": d.Bytes, "RAIDType": "RAID0", "VolumeUsage": "Data", "Status": status(),
		"Links": object{"Drives": []object{link(storage + "/Drives/Disk1")}},
	}
}

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

package sim

import (
	"strconv"
	"strings"
	"unicode"
)

func storageNode() *node {
	return &node{
		schema: "Storage.v1_15_0", get: getStorage,
		child: map[string]*node{
			"Drives":  {child: nil, ids: driveIDs, member: &node{schema: "Drive.v1_17_0", get: getDrive}},
			"Volumes": collection("Volume", "Volumes", volumeIDs, &node{schema: "Volume.v1_9_0", get: getVolume}),
		},
	}
}

// numbered are IDs with a prefix and a number from 1.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = prefix + strconv.Itoa(i+1)
	}
	return ids
}

// processorIDs are the processors, and the accelerators that are no system of their own.
func processorIDs(v view) []string {
	hw := v.server().build.Hardware
	ids := numbered("CPU", hw.Sockets)
	if v.bmc.rack.kind.board == "" {
		ids = append(ids, gpuIDs(hw.GPUs)...)
	}
	return ids
}

func dimmIDs(v view) []string  { return numbered("DIMM", v.server().build.Hardware.DIMMs) }
func driveIDs(v view) []string { return numbered("Disk", len(v.server().build.Hardware.Drives)) }

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

func getProcessor(v view) object {
	hw := v.server().build.Hardware
	if strings.HasPrefix(v.id(), "GPU") {
		return gpu(v.id(), hw)
	}
	family, instructions, _ := hw.architecture()
	return object{
		"Id": v.id(), "Name": v.id(), "Socket": "CPU " + strconv.Itoa(v.index()+1), "ProcessorType": "CPU",
		"ProcessorArchitecture": family, "InstructionSet": instructions, "Manufacturer": hw.CPUVendor, "Model": hw.CPUModel,
		"ProcessorId": object{"VendorId": hw.CPUID}, "MaxSpeedMHz": hw.MHz, "TotalCores": hw.Cores, "TotalThreads": hw.threads(), "Status": status(),
	}
}

func gpu(id string, hw *Hardware) object {
	return object{"Id": id, "Name": id, "ProcessorType": "GPU", "Manufacturer": "NVIDIA", "Model": hw.GPUModel, "Status": status()}
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

// getSimpleStorage shows the drives as older BMCs do: without serial numbers.
func getSimpleStorage(v view) object {
	devices := make([]object, 0, 2)
	for _, d := range v.server().build.Hardware.Drives {
		devices = append(devices, object{"Name": d.Name, "Manufacturer": d.Vendor, "Model": d.Model, "CapacityBytes": d.Bytes, "Status": status()})
	}
	return object{"Id": v.id(), "Name": "Disk Controller", "Devices": devices, "Status": status()}
}

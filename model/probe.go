package model

import (
	"slices"
	"time"
)

// ProbeRegistration is the body of POST /register, the wire format that it
// shares with metal-operator's metalprobe.
type ProbeRegistration struct {
	SystemUUID string    `json:"systemUUID"`
	Data       ProbeData `json:"data"`
}

// ProbeBootState is the body of POST /bootstate.
type ProbeBootState struct {
	SystemUUID string `json:"systemUUID"`
	Booted     bool   `json:"booted"`
	// CloudInit is what cloud-init keeps in its status.json, once it has ended; nil before.
	CloudInit *ProbeCloudInit `json:"cloudInit,omitempty"`
}

// ProbeCloudInit is how cloud-init fared, in its own words.
type ProbeCloudInit struct {
	V1 struct {
		InitLocal     ProbeCloudInitStage `json:"init-local"`
		Init          ProbeCloudInitStage `json:"init"`
		ModulesConfig ProbeCloudInitStage `json:"modules-config"`
		ModulesFinal  ProbeCloudInitStage `json:"modules-final"`
	} `json:"v1"`
}

// ProbeCloudInitStage is how one of its stages fared.
type ProbeCloudInitStage struct {
	Errors []string `json:"errors"`
}

// ProbeWipe is the body of POST /wipe, which only our own probe sends.
type ProbeWipe struct {
	SystemUUID string     `json:"systemUUID"`
	Mode       string     `json:"mode"`
	Disks      []DiskWipe `json:"disks"`
}

// ProbeWipeProgress is the body of POST /wipe-progress, which only our own probe
// sends.
type ProbeWipeProgress struct {
	SystemUUID string         `json:"systemUUID"`
	Mode       string         `json:"mode"`
	Disks      []DiskProgress `json:"disks"`
}

// ProbeData is what a probe reports of its machine. Every list may be absent.
type ProbeData struct {
	Timestamp         time.Time               `json:"timestamp"` // RFC 3339, seconds, UTC; the probe's clock, not to be trusted
	SystemInfo        ProbeSystemInfo         `json:"systemInfo"`
	CPU               []ProbeCPU              `json:"cpu"`
	NetworkInterfaces []ProbeNetworkInterface `json:"networkInterfaces"`
	LLDP              []ProbeLLDP             `json:"lldp"`
	Storage           []ProbeDisk             `json:"storage"`
	Memory            []ProbeMemory           `json:"memory"`
	NICs              []ProbeNIC              `json:"nics"`
	PCIDevices        []ProbePCIDevice        `json:"pciDevices"`
}

// Used returns the parts of a report that Ingot uses. The others are the larger part of it: PCI
// devices, memory modules, and a hundred features of each processor.
func (d *ProbeData) Used() ProbeData {
	used := ProbeData{Timestamp: d.Timestamp, NetworkInterfaces: d.NetworkInterfaces, LLDP: d.LLDP, Storage: d.Storage, NICs: d.NICs}
	for _, feature := range []string{longMode, advancedSIMD} {
		if slices.ContainsFunc(d.CPU, func(c ProbeCPU) bool { return slices.Contains(c.Capabilities, feature) }) {
			used.CPU = append(used.CPU, ProbeCPU{Capabilities: []string{feature}})
		}
	}
	return used
}

// ProbeSystemInfo is SMBIOS types 0 to 2 (DSP0134 §7.1 to §7.3).
type ProbeSystemInfo struct {
	BIOSInformation   ProbeBIOS   `json:"biosInformation"`
	SystemInformation ProbeSystem `json:"systemInformation"`
	BoardInformation  ProbeBoard  `json:"boardInformation"`
}

// ProbeBIOS is the firmware.
type ProbeBIOS struct {
	Vendor  string `json:"vendor"`
	Version string `json:"version"`
	Date    string `json:"date"`
}

// ProbeSystem is the machine.
type ProbeSystem struct {
	Manufacturer string `json:"manufacturer"`
	ProductName  string `json:"productName"`
	Version      string `json:"version"`
	SerialNumber string `json:"serialNumber"`
	UUID         string `json:"uuid"`
	SKUNumber    string `json:"skuNumber"`
	Family       string `json:"family"`
}

// ProbeBoard is the main board.
type ProbeBoard struct {
	Manufacturer string `json:"manufacturer"`
	Product      string `json:"product"`
	Version      string `json:"version"`
	SerialNumber string `json:"serialNumber"`
	AssetTag     string `json:"assetTag"`
}

// ProbeCPU is one processor package.
type ProbeCPU struct {
	ID                   int      `json:"id"`
	TotalCores           uint32   `json:"totalCores"`
	TotalHardwareThreads uint32   `json:"totalHardwareThreads"`
	Vendor               string   `json:"vendor"`
	Model                string   `json:"model"`
	Capabilities         []string `json:"capabilities"`
}

// ProbeNetworkInterface is one interface with its addresses.
type ProbeNetworkInterface struct {
	Name          string   `json:"name"`
	IPAddress     string   `json:"ipAddress"` // deprecated: the first of IPAddresses
	IPAddresses   []string `json:"ipAddresses"`
	MACAddress    string   `json:"macAddress"`
	CarrierStatus string   `json:"carrierStatus"` // up or down
}

// ProbeLLDP is one interface's LLDP neighbours.
type ProbeLLDP struct {
	Name      string          `json:"name"`
	Neighbors []ProbeNeighbor `json:"neighbors"`
}

// ProbeNeighbor is one LLDP neighbour.
type ProbeNeighbor struct {
	ChassisID         string   `json:"chassisId"`
	PortID            string   `json:"portId"`
	PortDescription   string   `json:"portDescription"`
	SystemName        string   `json:"systemName"`
	SystemDescription string   `json:"systemDescription"`
	MgmtIP            string   `json:"mgmtIp"`
	Capabilities      []string `json:"capabilities"`
	VLANID            string   `json:"vlanId"`
}

// ProbeDisk is one block device.
type ProbeDisk struct {
	Path              string `json:"path"`
	Name              string `json:"name"`
	Rotational        bool   `json:"rotational"`
	Removable         bool   `json:"removable"`
	ReadOnly          bool   `json:"readOnly"`
	Vendor            string `json:"vendor"`
	Model             string `json:"model"`
	Serial            string `json:"serial"`
	WWID              string `json:"wwid"`
	PhysicalBlockSize uint64 `json:"physicalBlockSize"`
	LogicalBlockSize  uint64 `json:"logicalBlockSize"`
	HWSectorSize      uint64 `json:"hWSectorSize"`
	SizeBytes         uint64 `json:"sizeBytes"`
	NUMANodeID        int    `json:"numaNodeID"`
	// Remote is set for a disk that is not in the machine, but on a storage network.
	// Probes of before do not tell.
	Remote bool `json:"remote,omitempty"`
	// Transport is what the disk hangs on: sata, sas, nvme, virtio, usb, mmc (soldered), sd
	// (a card), scsi for a RAID controller's volume, iscsi, fc or nvme-fabrics. ByPath is its
	// place in the machine as udev names it in /dev/disk/by-path, and HCTL its SCSI host,
	// channel, target and LUN. Each is empty when it is not known.
	Transport string `json:"transport,omitempty"`
	ByPath    string `json:"byPath,omitempty"`
	HCTL      string `json:"hctl,omitempty"`
}

// ProbeMemory is one memory device (DSP0134 §7.18).
type ProbeMemory struct {
	Size                  int64  `json:"size"` // bytes
	DeviceSet             string `json:"deviceSet"`
	DeviceLocator         string `json:"deviceLocator"`
	BankLocator           string `json:"bankLocator"`
	MemoryType            string `json:"memoryType"`
	Speed                 string `json:"speed"`
	Vendor                string `json:"vendor"`
	SerialNumber          string `json:"serialNumber"`
	AssetTag              string `json:"assetTag"`
	PartNumber            string `json:"partNumber"`
	ConfiguredMemorySpeed string `json:"configuredMemorySpeed"`
	MinimumVoltage        string `json:"minimumVoltage"`
	MaximumVoltage        string `json:"maximumVoltage"`
	ConfiguredVoltage     string `json:"configuredVoltage"`
}

// ProbeNIC is one network card's port.
type ProbeNIC struct {
	Name            string   `json:"name"`
	MAC             string   `json:"mac"`
	PCIAddress      string   `json:"pciAddress"`
	Speed           string   `json:"speed"`
	LinkModes       []string `json:"linkModes"`
	SupportedPorts  []string `json:"supportedPorts"`
	FirmwareVersion string   `json:"firmwareVersion"`
}

// ProbePCIDevice is one PCI device.
type ProbePCIDevice struct {
	Address    string `json:"address"`
	Vendor     string `json:"vendor"`
	VendorID   string `json:"vendorID"`
	Product    string `json:"product"`
	ProductID  string `json:"productID"`
	NUMANodeID int    `json:"numaNodeID"`
}

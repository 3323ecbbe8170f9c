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

// ProbeData is the report of a probe on its machine. Every list may be absent.
type ProbeData struct {
	Timestamp         time.Time               `json:"timestamp"` // RFC 3339, seconds, UTC; the probe's clock, not to be trusted
	CPU               []ProbeCPU              `json:"cpu"`
	NetworkInterfaces []ProbeNetworkInterface `json:"networkInterfaces"`
	LLDP              []ProbeLLDP             `json:"lldp"`
	Storage           []ProbeDisk             `json:"storage"`
	NICs              []ProbeNIC              `json:"nics"`
}

// Used returns a report without the features of processors that Ingot does not use, a hundred of each.
func (d *ProbeData) Used() ProbeData {
	used := *d
	used.CPU = nil
	for _, feature := range []string{longMode, advancedSIMD} {
		if slices.ContainsFunc(d.CPU, func(c ProbeCPU) bool { return slices.Contains(c.Capabilities, feature) }) {
			used.CPU = append(used.CPU, ProbeCPU{Capabilities: []string{feature}})
		}
	}
	return used
}

// ProbeCPU is one processor package.
type ProbeCPU struct {
	Capabilities []string `json:"capabilities"`
}

// ProbeNetworkInterface is one interface with its addresses.
type ProbeNetworkInterface struct {
	Name          string   `json:"name"`
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
	ChassisID         string `json:"chassisId"`
	PortID            string `json:"portId"`
	PortDescription   string `json:"portDescription"`
	SystemName        string `json:"systemName"`
	SystemDescription string `json:"systemDescription"`
}

// ProbeDisk is one block device.
type ProbeDisk struct {
	Path             string `json:"path"`
	Name             string `json:"name"`
	Rotational       bool   `json:"rotational"`
	Removable        bool   `json:"removable"`
	ReadOnly         bool   `json:"readOnly"`
	Vendor           string `json:"vendor"`
	Model            string `json:"model"`
	Serial           string `json:"serial"`
	WWID             string `json:"wwid"`
	LogicalBlockSize uint64 `json:"logicalBlockSize"`
	SizeBytes        uint64 `json:"sizeBytes"`
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

// ProbeNIC is one network card's port.
type ProbeNIC struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
}

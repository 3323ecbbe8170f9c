package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// overrideRule is what a vendor's BMC makes of a boot override; "" keeps what is
// sent.
type overrideRule string

const (
	// overrideForgetsMode falls back to Legacy when BootSourceOverrideMode is not
	// sent along.
	overrideForgetsMode overrideRule = "forgets mode"
	// overrideKeepsTarget refuses Disabled together with target None.
	overrideKeepsTarget overrideRule = "keeps target"
	// overrideInSettings takes boot properties only in the settings object, and
	// there only with If-Match.
	overrideInSettings overrideRule = "in settings"
)

// personality is a vendor's way, as data.
type personality struct {
	manufacturer string
	models       []string // servers take turns
	sku          string
	bios         string
	macPrefix    string // of BMCs and NICs: three bytes, lower case

	bmcModel    string
	bmcFirmware string
	manager     string // ID of the manager
	system      string // format of the IDs of systems; without a verb the first has no number
	chassis     string

	resetTypes    []string
	resetByInfo   bool // the types are published by @Redfish.ActionInfo only
	managerResets []string
	bootTargets   []string
	rule          overrideRule
	settings      string // name of the settings object below a system
	refusesRepeat bool   // On when on, and off when off, is an error
	upperUUID     bool
	macUUID       bool // system UUIDs are zeros and the MAC address
	weakETags     bool

	hardware *hardware
}

// hardware is what servers of a personality are made of.
type hardware struct {
	cpuVendor, cpuID, cpuModel string
	sockets, cores             int // cores per socket
	singleThreaded             bool
	mhz                        int
	dimms                      int
	dimmBytes                  int64
	dimmVendor, dimmPart       string
	dimmMHz                    int
	nicVendor, nicModel        string
	nicPCI                     [2]string // vendor and device ID
	nicFirmware                string
	nicMbps                    int
	disks                      []disk
}

// threads are the hardware threads of a socket.
func (hw *hardware) threads() int {
	if hw.singleThreaded {
		return hw.cores
	}
	return 2 * hw.cores
}

// disk is one kind of disk.
type disk struct {
	name     string // sda
	model    string
	vendor   string
	protocol string // NVMe, SATA
	media    string // SSD, HDD
	bytes    uint64
}

func (d disk) rotational() bool { return d.media == "HDD" }

// xeon and epyc are the two machines that there are.
var (
	xeon = &hardware{
		cpuVendor: "Intel(R) Corporation", cpuID: "GenuineIntel", cpuModel: "Intel(R) Xeon(R) Gold 6430",
		sockets: 2, cores: 32, mhz: 3400,
		dimms: 8, dimmBytes: 32 << 30, dimmVendor: "Samsung", dimmPart: "M321R4GA3BB6-CQKET", dimmMHz: 4800,
		nicVendor: "Intel Corporation", nicModel: "Ethernet Controller E810-XXV for SFP", nicPCI: [2]string{"8086", "159b"},
		nicFirmware: "4.40 0x8001c7d4", nicMbps: 25000,
		disks: []disk{
			{name: "nvme0n1", model: "INTEL SSDPE2KX010T8", vendor: "Intel", protocol: "NVMe", media: "SSD", bytes: 960197124096},
			{name: "sda", model: "ST4000NM024B", vendor: "Seagate", protocol: "SATA", media: "HDD", bytes: 4000787030016},
		},
	}
	epyc = &hardware{
		cpuVendor: "Advanced Micro Devices, Inc.", cpuID: "AuthenticAMD", cpuModel: "AMD EPYC 9354 32-Core Processor",
		sockets: 1, cores: 32, mhz: 3800,
		dimms: 12, dimmBytes: 16 << 30, dimmVendor: "SK Hynix", dimmPart: "HMCG78AGBRA190N", dimmMHz: 4800,
		nicVendor: "Mellanox Technologies", nicModel: "MT2894 Family [ConnectX-6 Lx]", nicPCI: [2]string{"15b3", "101f"},
		nicFirmware: "26.38.1002", nicMbps: 25000,
		disks: []disk{
			{name: "nvme0n1", model: "SAMSUNG MZQL2960HCJR-00A07", vendor: "Samsung", protocol: "NVMe", media: "SSD", bytes: 960197124096},
			{name: "nvme1n1", model: "SAMSUNG MZQL23T8HCLS-00A07", vendor: "Samsung", protocol: "NVMe", media: "SSD", bytes: 3840755982336},
		},
	}
)

// personalities are the vendors' ways by name. The values are those of recorded
// BMCs of each vendor.
var personalities = map[string]*personality{
	"generic": {
		manufacturer: "Ingot", models: []string{"Simulated Server"}, sku: "SIM-1", bios: "1.0.0", macPrefix: "02:1e:07",
		bmcModel: "Simulated BMC", bmcFirmware: "1.0.0", manager: "BMC", system: "%d", chassis: "%d",
		resetTypes:    []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "ForceOn", "PushPowerButton", "Nmi"},
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		bootTargets:   []string{"None", "Pxe", "UefiHttp", "Hdd", "Cd", "Usb", "BiosSetup"},
		settings:      "Settings", hardware: xeon,
	},
	"dell": {
		manufacturer: "Dell Inc.", models: []string{"PowerEdge R750", "PowerEdge R650"}, sku: "F54P1G3", bios: "1.8.2", macPrefix: "d0:94:66",
		bmcModel: "15G Monolithic", bmcFirmware: "6.00.30.00", manager: "iDRAC.Embedded.1", system: "System.Embedded.%d", chassis: "System.Embedded.%d",
		resetTypes:    []string{"On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"},
		managerResets: []string{"GracefulRestart"},
		bootTargets:   []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"},
		settings:      "Settings", refusesRepeat: true, hardware: xeon,
	},
	"hpe": {
		manufacturer: "HPE", models: []string{"ProLiant DL360 Gen11", "ProLiant DL380 Gen11"}, sku: "P52499-B21", bios: "U54 v1.40", macPrefix: "94:40:c9",
		bmcModel: "iLO 6", bmcFirmware: "iLO 6 v1.55", manager: "1", system: "%d", chassis: "%d",
		resetTypes:    []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"},
		managerResets: []string{"ForceRestart", "GracefulRestart"},
		bootTargets:   []string{"None", "Cd", "Hdd", "Usb", "SDCard", "Utilities", "Diags", "BiosSetup", "Pxe", "UefiShell", "UefiHttp", "UefiTarget"},
		rule:          overrideKeepsTarget, settings: "settings", refusesRepeat: true, upperUUID: true, weakETags: true, hardware: xeon,
	},
	"lenovo": {
		manufacturer: "Lenovo", models: []string{"ThinkSystem SR650 V2", "ThinkSystem SR630 V2"}, sku: "7Z73CTO1WW", bios: "U8E122J", macPrefix: "08:94:ef",
		bmcModel: "Lenovo XClarity Controller", bmcFirmware: "TGBT42S 2.83", manager: "1", system: "%d", chassis: "%d",
		resetTypes:    []string{"On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"},
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		bootTargets:   []string{"None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"},
		settings:      "Pending", hardware: xeon,
	},
	"supermicro": {
		manufacturer: "Supermicro", models: []string{"SYS-111C-NR", "SYS-121C-TN10R"}, sku: "0x1D1415D9", bios: "1.4", macPrefix: "7c:c2:55",
		bmcModel: "ASPEED", bmcFirmware: "01.01.01", manager: "1", system: "%d", chassis: "%d",
		resetTypes:  []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PowerCycle"},
		resetByInfo: true, managerResets: []string{"GracefulRestart"},
		bootTargets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"},
		rule:        overrideForgetsMode, settings: "SD", upperUUID: true, macUUID: true, hardware: epyc,
	},
	"ami": {
		manufacturer: "GIGABYTE", models: []string{"R183-Z90-AAD1"}, sku: "01234567890123456789AB", bios: "R14", macPrefix: "b4:2e:99",
		bmcModel: "AST2600", bmcFirmware: "13.06.10", manager: "Self", system: "Self", chassis: "Self",
		resetTypes:  []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PowerCycle"},
		resetByInfo: true, managerResets: []string{"ForceRestart"},
		bootTargets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UefiShell", "UefiHttp"},
		rule:        overrideInSettings, settings: "SD", weakETags: true, hardware: epyc,
	},
}

// Personalities are the names that Options.Personality may have, sorted.
func Personalities() []string { return slices.Sorted(maps.Keys(personalities)) }

// memberID returns the ID of the i-th of n members, i from 0, such that IDs sort
// as their members do.
func memberID(format string, i, n int) string {
	number := fmt.Sprintf("%0*d", len(strconv.Itoa(n)), i+1)
	switch before, after, verb := strings.Cut(format, "%d"); {
	case verb:
		return before + number + after
	case i == 0:
		return format
	default:
		return format + number
	}
}

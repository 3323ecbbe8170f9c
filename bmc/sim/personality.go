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
	// ordersLater: it takes a boot order in the settings object alone, for the next start.
	ordersLater   bool
	refusesRepeat bool // On when on, and off when off, is an error
	upperUUID     bool
	macUUID       bool // system UUIDs are zeros and the MAC address
	weakETags     bool
	// noIndicatorLED: LocationIndicatorActive is the only property of its indicator.
	noIndicatorLED bool

	hardware *Hardware
}

// Hardware is what a machine is made of.
type Hardware struct {
	CPUVendor, CPUID, CPUModel string
	Sockets, Cores             int // cores per socket
	SingleThreaded             bool
	MHz                        int
	DIMMs                      int
	DIMMBytes                  int64
	DIMMVendor, DIMMPart       string
	DIMMMHz                    int
	NICVendor, NICModel        string
	NICPCI                     [2]string // vendor and device ID
	NICFirmware                string
	NICMbps                    int
	Drives                     []Drive
}

// threads are the hardware threads of a socket.
func (hw *Hardware) threads() int {
	if hw.SingleThreaded {
		return hw.Cores
	}
	return 2 * hw.Cores
}

// Drive is one disk of a machine, as its system names it.
type Drive struct {
	Name     string // sda
	Model    string
	Vendor   string
	Protocol string // NVMe, SATA
	Media    string // SSD, HDD
	Bytes    uint64
}

func (d Drive) rotational() bool { return d.Media == "HDD" }

// xeon and epyc are the two machines that there are.
var (
	xeon = &Hardware{
		CPUVendor: "Intel(R) Corporation", CPUID: "GenuineIntel", CPUModel: "Intel(R) Xeon(R) Gold 6430",
		Sockets: 2, Cores: 32, MHz: 3400,
		DIMMs: 8, DIMMBytes: 32 << 30, DIMMVendor: "Samsung", DIMMPart: "M321R4GA3BB6-CQKET", DIMMMHz: 4800,
		NICVendor: "Intel Corporation", NICModel: "Ethernet Controller E810-XXV for SFP", NICPCI: [2]string{"8086", "159b"},
		NICFirmware: "4.40 0x8001c7d4", NICMbps: 25000,
		Drives: []Drive{
			{Name: "nvme0n1", Model: "INTEL SSDPE2KX010T8", Vendor: "Intel", Protocol: "NVMe", Media: "SSD", Bytes: 960197124096},
			{Name: "sda", Model: "ST4000NM024B", Vendor: "Seagate", Protocol: "SATA", Media: "HDD", Bytes: 4000787030016},
		},
	}
	epyc = &Hardware{
		CPUVendor: "Advanced Micro Devices, Inc.", CPUID: "AuthenticAMD", CPUModel: "AMD EPYC 9354 32-Core Processor",
		Sockets: 1, Cores: 32, MHz: 3800,
		DIMMs: 12, DIMMBytes: 16 << 30, DIMMVendor: "SK Hynix", DIMMPart: "HMCG78AGBRA190N", DIMMMHz: 4800,
		NICVendor: "Mellanox Technologies", NICModel: "MT2894 Family [ConnectX-6 Lx]", NICPCI: [2]string{"15b3", "101f"},
		NICFirmware: "26.38.1002", NICMbps: 25000,
		Drives: []Drive{
			{Name: "nvme0n1", Model: "SAMSUNG MZQL2960HCJR-00A07", Vendor: "Samsung", Protocol: "NVMe", Media: "SSD", Bytes: 960197124096},
			{Name: "nvme1n1", Model: "SAMSUNG MZQL23T8HCLS-00A07", Vendor: "Samsung", Protocol: "NVMe", Media: "SSD", Bytes: 3840755982336},
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
		settings:      "Pending", ordersLater: true, hardware: xeon,
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
		rule:        overrideInSettings, settings: "SD", ordersLater: true, weakETags: true, noIndicatorLED: true, hardware: epyc,
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

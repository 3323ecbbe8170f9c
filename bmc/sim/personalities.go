package sim

import "time"

// everything is what the boot of a system shows on BMCs that show all there is.
var everything = []string{
	"BootSourceOverrideMode", "BootSourceOverrideMode@Redfish.AllowableValues",
	"BootSourceOverrideEnabled@Redfish.AllowableValues", "HttpBootUri",
}

// mode is what it shows on most.
var mode = []string{"BootSourceOverrideMode"}

// modeListed is what it shows with the values allowed.
var modeListed = []string{
	"BootSourceOverrideMode", "BootSourceOverrideMode@Redfish.AllowableValues", "BootSourceOverrideEnabled@Redfish.AllowableValues",
}

// personalities are the vendors' ways by name. What they have and lack is what recordings of
// such BMCs show; how they answer writes is what their users report. There is no recording of
// Fujitsu's: its row is what is generally known of them, without a recording. "generic" is no vendor's.
var personalities = map[string]*personality{
	"generic": {
		manufacturer: "Ingot", models: []string{"Simulated Server"}, sku: "SIM-1", bios: "1.0.0", macPrefix: "02:1e:07",
		root:     rootForm{version: "1.15.0", vendor: "Ingot", product: "Simulated BMC", expand: expansion{levels: 2, all: true}, only: true, topSkip: true},
		bmcModel: "Simulated BMC", bmcFirmware: "1.0.0", manager: "BMC", system: "%d", chassis: "%d",
		lacks:         []string{"NetworkInterfaces"},
		resetTypes:    []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "ForceOn", "PushPowerButton", "Nmi"},
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "UefiHttp", "Hdd", "Cd", "Usb", "BiosSetup", "UefiTarget"}, shows: everything,
			order: orderNow, settings: "Settings",
		},
		sessions: 16, idle: 30 * time.Minute, hardware: xeon,
	},
	"dell": {
		manufacturer: "Dell Inc.", models: []string{"PowerEdge R750", "PowerEdge R650"}, sku: "F54P1G3", bios: "1.8.2", macPrefix: "d0:94:66",
		root:     rootForm{version: "1.13.1", vendor: "Dell", product: "Integrated Dell Remote Access Controller", expand: expansion{levels: 1, all: true}, only: true},
		bmcModel: "15G Monolithic", bmcFirmware: "6.00.30.00", manager: "iDRAC.Embedded.1", system: "System.Embedded.%d", chassis: "System.Embedded.%d",
		lacks:      []string{"RootUUID", "LocationIndicatorActive", "BootProgress"},
		resetTypes: []string{"On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"}, managerResets: []string{"GracefulRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"},
			shows:   mode, order: orderNow,
		},
		refusesRepeat: true, etags: etagHeader, sessions: 8, idle: 30 * time.Minute, hardware: xeon,
	},
	"hpe": {
		manufacturer: "HPE", models: []string{"ProLiant DL360 Gen11", "ProLiant DL380 Gen11"}, sku: "P52499-B21", bios: "U54 v1.40", macPrefix: "94:40:c9",
		root:     rootForm{version: "1.20.0", vendor: "HPE", product: "ProLiant DL360 Gen11", expand: expansion{levels: 1}, only: true},
		bmcModel: "iLO 6", bmcFirmware: "iLO 6 v1.66", manager: "1", system: "%d", chassis: "%d",
		lacks:         []string{"IndicatorLED", "SimpleStorage", "SystemVirtualMedia", "LastResetTime", "PartNumber"},
		resetTypes:    []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"},
		managerResets: []string{"ForceRestart", "GracefulRestart"},
		boot: bootForm{
			targets: []string{"None", "Cd", "Hdd", "Usb", "SDCard", "Utilities", "Diags", "BiosSetup", "Pxe", "UefiShell", "UefiHttp", "UefiTarget"},
			shows:   mode, rule: overrideKeepsTarget, order: orderNow,
		},
		refusesRepeat: true, uuid: uuidUpper, etags: etagWeak, sessions: 16, idle: 30 * time.Minute, hardware: xeon,
	},
	"lenovo": {
		manufacturer: "Lenovo", models: []string{"ThinkSystem SR670 V2", "ThinkSystem SR650 V2"}, sku: "7Z23CTO1WW", bios: "U8E122J", macPrefix: "08:94:ef",
		root:     rootForm{version: "1.15.0", vendor: "Lenovo", expand: expansion{levels: 2, all: true}, only: true},
		bmcModel: "Lenovo XClarity Controller", bmcFirmware: "TGBT42S 2.83", manager: "1", system: "%d", chassis: "%d",
		lacks:      []string{"LocationIndicatorActive", "SimpleStorage", "BootProgress", "LastResetTime"},
		resetTypes: []string{"On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"}, resetForm: resetsInBoth,
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"},
			shows:   []string{"BootSourceOverrideMode", "BootSourceOverrideEnabled@Redfish.AllowableValues"}, noAlways: true,
			order: orderLater, settings: "Pending",
		},
		needsIfMatch: true, sessions: 16, idle: 5 * time.Minute, hardware: xeonGPU,
	},
	"supermicro": {
		manufacturer: "Supermicro", models: []string{"SYS-111C-NR", "SYS-121C-TN10R"}, sku: "0x1D1415D9", bios: "1.4", macPrefix: "7c:c2:55",
		root:     rootForm{version: "1.11.0", expand: expansion{levels: 2, all: true}},
		bmcModel: "ASPEED", bmcFirmware: "01.01.01", manager: "1", system: "%d", chassis: "%d",
		lacks:      []string{"SystemVirtualMedia", "AssetTag", "LastResetTime", "HostName"},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PowerCycle"}, resetForm: resetsInInfo,
		managerResets: []string{"GracefulRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UefiBootNext", "UefiHttp"},
			shows:   mode, rule: overrideForgetsMode, order: orderNow,
		},
		uuid: uuidMAC, sessions: 16, idle: 5 * time.Minute, hardware: epyc,
	},
	"ami": {
		manufacturer: "GIGABYTE", models: []string{"R183-Z90-AAD1"}, sku: "01234567890123456789AB", bios: "R14", macPrefix: "b4:2e:99",
		root:     rootForm{version: "1.15.1", vendor: "AMI", product: "AMI Redfish Server", expand: expansion{levels: 5, all: true}, only: true},
		bmcModel: "AST2600", bmcFirmware: "13.06.10", manager: "Self", system: "Self", chassis: "Self",
		lacks:      []string{"IndicatorLED", "SystemVirtualMedia", "BootProgress", "LastResetTime"},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "PowerCycle"}, resetForm: resetsInInfo,
		managerResets: []string{"ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UefiShell", "UefiHttp"},
			shows:   modeListed, rule: overrideInSettings, order: orderLater, settings: "SD",
		},
		etags: etagWeak, sessions: 16, idle: 10 * time.Minute, hardware: epyc,
	},
	"gigabyte": {
		manufacturer: "GIGABYTE", models: []string{"H262-Z63-00"}, sku: "01234567890123456789AB", bios: "C27", macPrefix: "b4:2e:99",
		root:     rootForm{version: "1.7.0", vendor: "AMI", product: "AMI Redfish Server", expand: expansion{levels: 5, all: true}, only: true},
		bmcModel: "410810600", bmcFirmware: "12.84.13", manager: "Self", system: "Self", chassis: "Self",
		lacks:      []string{"LocationIndicatorActive", "SystemVirtualMedia", "BootProgress", "LastResetTime", "HostName"},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart"}, resetForm: resetsInInfo,
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "Utilities", "UefiShell", "UefiTarget", "SDCard", "UefiHttp", "RemoteDrive", "UefiBootNext"},
			shows:   modeListed, order: orderNow,
		},
		etags: etagWeak, needsIfMatch: true, sessions: 16, idle: 30 * time.Second, hardware: epyc,
	},
	"openbmc": {
		manufacturer: "OpenBMC Project", models: []string{"Reference Server"}, sku: "REF-1", bios: "2.15.0", macPrefix: "9c:6b:00",
		root:     rootForm{version: "1.17.0", only: true},
		bmcModel: "OpenBmc", bmcFirmware: "2.15.0-dev", manager: "bmc", system: "system", chassis: "chassis",
		lacks: []string{
			"EthernetInterfaces", "NetworkInterfaces", "NetworkAdapters", "SecureBoot", "SimpleStorage", "SystemVirtualMedia", "VirtualMedia", "AssetTag", "SKU",
			"HostName",
		},
		resetTypes: []string{"On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle", "Nmi"}, resetForm: resetsInInfo,
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"},
			shows:   []string{"BootSourceOverrideMode", "BootSourceOverrideMode@Redfish.AllowableValues"},
		},
		sessions: 64, idle: 30 * time.Minute, hardware: epyc,
	},
	"nvidia": {
		manufacturer: "NVIDIA", models: []string{"GH200"}, sku: "P3809", bios: "02.03.19", macPrefix: "94:6d:ae",
		root:     rootForm{version: "1.9.0", vendor: "NVIDIA", product: "P3809", expand: expansion{levels: 6, all: true}, only: true},
		bmcModel: "OpenBmc", bmcFirmware: "GH200-24.05-2", manager: "BMC_0", system: "System_%d", chassis: "BMC_%d", fromZero: true, board: "HGX_Baseboard_0",
		lacks: []string{
			"EthernetInterfaces", "NetworkInterfaces", "NetworkAdapters", "SimpleStorage", "SystemVirtualMedia", "AssetTag", "SKU", "HostName", "SerialNumber",
			"PartNumber", "BiosVersion", "Manufacturer", "Model",
		},
		resetTypes: []string{"On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle"}, resetForm: resetsInInfo,
		managerResets: []string{"GracefulRestart", "ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"},
			shows:   []string{"BootSourceOverrideEnabled@Redfish.AllowableValues"}, order: orderLater, settings: "Settings",
		},
		sessions: 64, idle: 30 * time.Minute, hardware: grace,
	},
	"cisco": {
		manufacturer: "Cisco Systems Inc", models: []string{"UCSC-C220-M5SX"}, sku: "UCSC-C220-M5SX", bios: "C220M5.4.1.3i", macPrefix: "70:0f:6a",
		root:     rootForm{version: "1.5.1", vendor: "Cisco Systems Inc.", product: "UCSC-C220-M5SX"},
		bmcModel: "UCSC-C220-M5SX", bmcFirmware: "4.1(3d)", manager: "CIMC", system: serialID, chassis: "%d",
		lacks:      []string{"RootUUID", "LocationIndicatorActive", "SystemVirtualMedia", "SKU", "PartNumber", "BootProgress", "LastResetTime"},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle"}, managerResets: []string{"ForceRestart"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Diags"},
			shows:   []string{"BootSourceOverrideEnabled@Redfish.AllowableValues"},
		},
		uuid: uuidUpper, etags: etagHeader, sessions: 4, idle: 30 * time.Minute, hardware: xeon,
	},
	"huawei": {
		manufacturer: "Huawei", models: []string{"2288H V5"}, bios: "0.95", macPrefix: "80:34:5c",
		root:     rootForm{version: "1.0.2"},
		bmcModel: "iBMC", bmcFirmware: "3.12", manager: "1", system: "%d", chassis: "%d",
		lacks: []string{
			"LocationIndicatorActive", "IndicatorLED", "SecureBoot", "SimpleStorage", "SystemVirtualMedia", "SKU", "BootProgress", "LastResetTime", "Registries",
		},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PowerCycle"}, resetForm: resetsInInfo,
		managerResets: []string{"ForceRestart"},
		boot:          bootForm{targets: []string{"None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup"}, shows: mode},
		uuid:          uuidUpper, etags: etagWeak, needsIfMatch: true, sessions: 4, idle: 5 * time.Minute, storage: "Storages", hardware: xeon,
	},
	"fujitsu": {
		manufacturer: "FUJITSU", models: []string{"PRIMERGY RX2540 M6"}, sku: "S26361-K1792", bios: "V1.0.0.0 R1.22.0", macPrefix: "90:1b:0e",
		root:     rootForm{version: "1.6.0", vendor: "FUJITSU", product: "iRMC S5", expand: expansion{levels: 1, all: true}, only: true},
		bmcModel: "iRMC S5", bmcFirmware: "3.39P", manager: "iRMC", system: "%d", chassis: "%d", fromZero: true,
		lacks:      []string{"LocationIndicatorActive", "SimpleStorage", "SystemVirtualMedia", "BootProgress", "LastResetTime"},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "PowerCycle", "PushPowerButton"},
		boot: bootForm{
			targets: []string{"None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup"}, shows: mode,
		},
		etags: etagHeader, needsIfMatch: true, sessions: 16, idle: 10 * time.Minute, hardware: xeon,
	},
	"quanta": {
		manufacturer: "Quanta Cloud Technology Inc.", models: []string{"QuantaGrid D42A-2U"}, bios: "3A08.01", macPrefix: "d8:c4:97",
		root:     rootForm{version: "1.1.0"},
		bmcModel: "AST2500", bmcFirmware: "4.11", manager: "Self", system: "Self", chassis: "Self",
		lacks: []string{
			"LocationIndicatorActive", "Storage", "SimpleStorage", "SecureBoot", "NetworkInterfaces", "NetworkAdapters", "SystemVirtualMedia", "VirtualMedia",
			"SKU", "BootProgress", "LastResetTime", "HostName", "UpdateService",
		},
		resetTypes: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart"},
		boot:       bootForm{targets: []string{"None", "Pxe", "Hdd", "Usb", "Cd", "UefiTarget"}, shows: modeListed},
		uuid:       uuidSwapped, etags: etagWeak, sessions: 16, idle: 10 * time.Minute, hardware: epyc,
	},
	"intel": {
		manufacturer: "Intel Corporation", models: []string{"S2600BPB"}, bios: "SE5C620.86B.02.01.0008", macPrefix: "a4:bf:01",
		root:     rootForm{version: "1.1.0"},
		bmcModel: "S2600BPB", bmcFirmware: "1.93.870cf4f0", manager: "BMC", system: serialID, chassis: "RackMount",
		lacks: []string{
			"LocationIndicatorActive", "SimpleStorage", "SecureBoot", "NetworkInterfaces", "NetworkAdapters", "SystemVirtualMedia", "BootProgress", "LastResetTime",
			"HostName", "JsonSchemas", "Tasks",
		},
		resetTypes: []string{"PushPowerButton", "On", "GracefulShutdown", "ForceRestart", "Nmi", "ForceOn", "ForceOff"}, managerResets: []string{"ForceRestart"},
		boot:  bootForm{targets: []string{"None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiShell", "Usb"}, shows: mode},
		etags: etagHeader, sessions: 16, idle: 30 * time.Minute, emptyNICs: true, hardware: xeon,
	},
	"cray": {
		manufacturer: "HPE", models: []string{"HPE EX4252"}, bios: "ex4252.bios-1.3.0", macPrefix: "00:40:a6",
		root:     rootForm{version: "1.2.0"},
		bmcModel: "CC", bmcFirmware: "cc.1.9.0", manager: "BMC", system: "Node%d", chassis: "Node%d", fromZero: true,
		lacks: []string{
			"RootUUID", "UUID", "IndicatorLED", "LocationIndicatorActive", "Storage", "SimpleStorage", "SecureBoot", "NetworkInterfaces", "SystemVirtualMedia",
			"VirtualMedia", "AssetTag", "SKU", "HostName", "BootProgress", "LastResetTime", "ManagedBy", "ManagerForServers",
		},
		resetTypes: []string{"Off", "On", "ForceOff"}, resetForm: resetsInInfo, managerResets: []string{"ForceRestart"},
		boot:  bootForm{order: orderNow},
		etags: etagWeak, sessions: 16, idle: 30 * time.Second, hardware: trento,
	},
}

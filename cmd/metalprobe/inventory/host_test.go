package inventory

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestReadAWholeMachine(t *testing.T) {
	h := with(sata("sda", "8"), tree{
		"sys/class/dmi/id/bios_vendor":     "Dell Inc.\n",
		"sys/class/dmi/id/bios_version":    "2.19.1\n",
		"sys/class/dmi/id/bios_date":       "06/04/2023\n",
		"sys/class/dmi/id/sys_vendor":      "Dell Inc.\n",
		"sys/class/dmi/id/product_name":    "PowerEdge R740\n",
		"sys/class/dmi/id/product_serial":  "ABC1234\n",
		"sys/class/dmi/id/product_uuid":    "4c4c4544-0042-4310-8031-b3c04f313233\n",
		"sys/class/dmi/id/product_sku":     "SKU=0715\n",
		"sys/class/dmi/id/product_family":  "PowerEdge\n",
		"sys/class/dmi/id/product_version": "  \n",
		"sys/class/dmi/id/board_vendor":    "Dell Inc.\n",
		"sys/class/dmi/id/board_name":      "0923K0\n",
		"sys/class/dmi/id/board_version":   "A08\n",
		"sys/class/dmi/id/board_serial":    ".ABC.\n",
		"sys/class/dmi/id/board_asset_tag": "\n",
		"sys/firmware/dmi/tables/DMI":      string(dimm(nil)),

		"proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu vmx\n\n",

		"sys/devices/pci0000:3a/0000:3b:00.0/vendor":    "0x15b3\n",
		"sys/devices/pci0000:3a/0000:3b:00.0/device":    "0x1015\n",
		"sys/devices/pci0000:3a/0000:3b:00.0/numa_node": "0\n",
		"sys/bus/pci/devices/0000:3b:00.0":              "-> ../../../devices/pci0000:3a/0000:3b:00.0",
		"sys/class/net/eth0/device":                     "-> ../../../devices/pci0000:3a/0000:3b:00.0",
		"sys/class/net/eth0/address":                    "0c:42:a1:00:00:01\n",
		"sys/class/net/eth0/carrier":                    "1\n",
		"sys/class/net/eth0/speed":                      "25000\n",
		"sys/class/net/bond0/address":                   "0c:42:a1:00:00:01\n",
		"usr/share/hwdata/pci.ids": "# names\n15b3  Mellanox Technologies\n\t1015  MT27710 Family [ConnectX-4 Lx]\n" +
			"\t\t15b3 0003  Stand-up\nffff  Other\n\t1015  Not this\n",
	}).host(t)
	h.Interfaces = func() ([]Interface, error) {
		return []Interface{
			{Name: "lo", IPs: []string{"127.0.0.1"}, Loopback: true},
			{Name: "tun0", IPs: []string{"10.9.9.9"}},
			{Name: "docker0", IPs: []string{"172.17.0.1"}},
			{Name: "eth0", MAC: "0c:42:a1:00:00:01", IPs: []string{"10.0.0.7", "fe80::7"}},
			{Name: "bond0", MAC: "0c:42:a1:00:00:01"},
		}, nil
	}
	h.Link = func(name string) Link {
		return map[string]Link{"eth0": {Firmware: "14.32", Modes: []string{"25000baseCR/Full"}, Ports: []string{"FIBRE"}}}[name]
	}
	now := time.Date(2026, 11, 21, 7, 0, 0, 999, time.FixedZone("CET", 3600))
	want := model.ProbeData{
		Timestamp: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC),
		SystemInfo: model.ProbeSystemInfo{
			BIOSInformation: model.ProbeBIOS{Vendor: "Dell Inc.", Version: "2.19.1", Date: "06/04/2023"},
			SystemInformation: model.ProbeSystem{
				Manufacturer: "Dell Inc.", ProductName: "PowerEdge R740", SerialNumber: "ABC1234",
				UUID: "4c4c4544-0042-4310-8031-b3c04f313233", SKUNumber: "SKU=0715", Family: "PowerEdge",
			},
			BoardInformation: model.ProbeBoard{Manufacturer: "Dell Inc.", Product: "0923K0", Version: "A08", SerialNumber: ".ABC."},
		},
		CPU: []model.ProbeCPU{{
			TotalCores: 1, TotalHardwareThreads: 1, Vendor: "GenuineIntel", Model: "Xeon", Capabilities: []string{"fpu", "vmx"},
		}},
		NetworkInterfaces: []model.ProbeNetworkInterface{
			{
				Name: "eth0", IPAddress: "10.0.0.7", IPAddresses: []string{"10.0.0.7", "fe80::7"},
				MACAddress: "0c:42:a1:00:00:01", CarrierStatus: "up",
			},
			{Name: "bond0", IPAddresses: []string{}, MACAddress: "0c:42:a1:00:00:01", CarrierStatus: "down"},
		},
		LLDP:    []model.ProbeLLDP{},
		Storage: []model.ProbeDisk{sataDisk("sda", "8").ProbeDisk},
		Memory:  []model.ProbeMemory{dimmWanted(nil)},
		NICs: []model.ProbeNIC{{
			Name: "eth0", MAC: "0c:42:a1:00:00:01", PCIAddress: "0000:3b:00.0", Speed: "25000Mb/s",
			LinkModes: []string{"25000baseCR/Full"}, SupportedPorts: []string{"FIBRE"}, FirmwareVersion: "14.32",
		}},
		PCIDevices: []model.ProbePCIDevice{{
			Address: "0000:3b:00.0", VendorID: "15b3", ProductID: "1015",
			Vendor: "Mellanox Technologies", Product: "MT27710 Family [ConnectX-4 Lx]",
		}},
	}
	if diff := cmp.Diff(want, h.Read(now)); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

func TestAMachineThatTellsNothingHasEmptyLists(t *testing.T) {
	h := tree{}.host(t)
	h.Interfaces = func() ([]Interface, error) { return nil, errors.New("not permitted") }
	content := must.Get(json.Marshal(h.Read(time.Unix(0, 0))))(t)
	for _, list := range []string{"cpu", "networkInterfaces", "lldp", "storage", "memory", "nics", "pciDevices"} {
		if !strings.Contains(string(content), `"`+list+`":[]`) {
			t.Errorf("%s is not an empty list in %s", list, content)
		}
	}
}

func TestThisMachineCanBeRead(t *testing.T) {
	data := Local(tree{}.host(t).Log).Read(time.Now())
	if len(data.CPU) == 0 || data.CPU[0].TotalHardwareThreads == 0 {
		t.Errorf("processors %+v, want at least one with a thread", data.CPU)
	}
}

func TestClean(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"padding goes":                       {"  ABC \n", "ABC"},
		"control characters become spaces":   {"A\x00B\x1b[31m", "A B [31m"},
		"bytes that are no UTF-8 do, too":    {"A\xffB", "A B"},
		"other scripts stay":                 {"Дelta", "Дelta"},
		"what is too long is cut":            {strings.Repeat("x", 5000), strings.Repeat("x", 1024)},
		"no character is cut into two":       {strings.Repeat("x", 1023) + "é", strings.Repeat("x", 1023)},
		"what is cut has no padding, either": {strings.Repeat("x", 1000) + strings.Repeat(" ", 100) + "y", strings.Repeat("x", 1000)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := clean(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

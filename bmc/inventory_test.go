package bmc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

const cards = sysURI + "/NetworkInterfaces"

func (f *fake) cards(functions ...object) {
	f.resources[sysURI]["NetworkInterfaces"] = linked(cards)
	f.resources[cards] = listed(cards + "/1")
	f.resources[cards+"/1"] = object{"Id": "1", "Name": "1", "NetworkDeviceFunctions": linked(cards + "/1/NetworkDeviceFunctions")}
	var uris []string
	for i, function := range functions {
		uri := cards + "/1/NetworkDeviceFunctions/" + strconv.Itoa(i)
		f.resources[uri] = function
		uris = append(uris, uri)
	}
	f.resources[cards+"/1/NetworkDeviceFunctions"] = listed(uris...)
}

// chassisCards gives the machine one network card, of the chassis alone, that holds systems.
func (f *fake) chassisCards(systems ...string) {
	f.cards(object{"Id": "1", "Name": "f", "Ethernet": object{"MACAddress": "02:00:00:00:00:01"}})
	delete(f.resources[sysURI], "NetworkInterfaces")
	delete(f.resources[sysURI], "EthernetInterfaces")
	f.resources[sysURI]["Links"].(object)["Chassis"] = []any{linked("/redfish/v1/Chassis/1")}
	f.resources["/redfish/v1/Chassis/1"] = object{"Id": "1", "Name": "1", "NetworkAdapters": linked(cards)}
	if len(systems) > 0 {
		f.resources["/redfish/v1/Chassis/1"]["Links"] = object{"ComputerSystems": listed(systems...)["Members"]}
	}
}

// One odd field, item or collection costs nothing but itself.
func TestInventoryOfOddShapes(t *testing.T) {
	const cpu, nic, dimm = sysURI + "/Processors/CPU1", sysURI + "/EthernetInterfaces/NIC1", sysURI + "/Memory/DIMM1"
	failing := func(path string, status int, id string) func(*fake) {
		return func(f *fake) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != path {
					return false
				}
				fail(w, status, id)
				return true
			}
		}
	}
	tests := map[string]struct {
		prepare  func(*fake)
		change   func(*model.Inventory) // of what is read of a machine without oddities
		problems []string
	}{
		"an instruction set that is a list, as of an iDRAC": {
			prepare: func(f *fake) { f.resources[cpu]["InstructionSet"] = []any{object{"Member": "x86-64"}} },
		},
		"cores that are a text, as of sushy-tools (B27)": {
			prepare: func(f *fake) { f.resources[cpu]["TotalCores"] = "8" },
		},
		"cores that are nonsense": {
			prepare:  func(f *fake) { f.resources[cpu]["TotalCores"] = "plenty" },
			change:   func(i *model.Inventory) { i.Processors[0].TotalCores = 0 },
			problems: []string{cpu + ": left out, as not in the schema's form: TotalCores"},
		},
		"cores that are fewer than none": {
			prepare: func(f *fake) { f.resources[cpu]["TotalCores"] = -1 },
			change:  func(i *model.Inventory) { i.Processors[0].TotalCores = 0 },
		},
		"a processor family that is a number, as of a Huawei": {
			prepare: func(f *fake) { f.resources[cpu]["ProcessorId"] = object{"EffectiveFamily": 6} },
		},
		"a VLAN that is -1, as of a UCS X": {
			prepare: func(f *fake) { f.resources[nic]["VLAN"] = object{"VLANId": -1, "VLANEnable": false} },
		},
		"a message that is an object, as of an iDRAC 8 whose host is off": {
			prepare: func(f *fake) {
				f.resources[sysURI+"/Processors"]["@Message.ExtendedInfo"] = object{"Message": "Host system is switched-off"}
			},
		},
		"a list of processors that is null (B27)": {
			prepare: func(f *fake) { f.resources[sysURI+"/Processors"]["Members"] = nil },
			change:  func(i *model.Inventory) { i.Processors = nil },
			problems: []string{"processors: bmc bmc-1: GET " + sysURI +
				"/Processors: the BMC's answer is incomplete, or not the requested resource: a collection with no Members"},
		},
		"a collection that fails": {
			prepare: failing(sysURI+"/Memory", http.StatusInternalServerError, "Base.1.0.InternalError"),
			change:  func(i *model.Inventory) { i.Memory = nil },
			problems: []string{"memory: bmc bmc-1: GET " + sysURI +
				"/Memory: 500 Internal Server Error: A general error. This is Base.1.0.InternalError."},
		},
		"a storage that is not ready, as of an iLO that was switched off": {
			prepare: func(f *fake) {
				f.expand = false
				failing(sysURI+"/Storage/RAID", http.StatusBadRequest, "iLO.2.25.ResourceNotReadyRetry")(f)
			},
			change: func(i *model.Inventory) { i.Storages = nil },
			problems: []string{sysURI + "/Storage/RAID: bmc bmc-1: GET " + sysURI +
				"/Storage/RAID: 400 Bad Request: the BMC is busy: A general error. This is iLO.2.25.ResourceNotReadyRetry."},
		},
		"a drive that is part of more volumes than there are": {
			prepare: func(f *fake) {
				var all []any
				for n := range maxVolumes + 1 {
					uri := sysURI + "/Storage/RAID/Volumes/" + strconv.Itoa(n)
					f.resources[uri] = object{
						"Id": strconv.Itoa(n), "Name": "boot", "CapacityBytes": 1000, "RAIDType": "RAID1",
						"Status": object{"State": "Enabled"},
						"Links":  object{"Drives": []any{object{"@odata.id": sysURI + "/Storage/RAID/Drives/0"}}}}
					all = append(all, object{"@odata.id": uri})
				}
				f.resources[sysURI+"/Storage/RAID/Volumes"] = object{"Members": all, "Members@odata.count": len(all)}
			},
			change: func(i *model.Inventory) {
				volumes := make([]model.Volume, maxVolumes+1)
				for n := range volumes {
					volumes[n] = i.Storages[0].Volumes[0]
				}
				i.Storages[0].Volumes, i.Storages[0].Drives[0].Volumes = volumes, nil
			},
			problems: []string{sysURI + "/Storage/RAID: drive Drive 0 is part of more than 64 volumes"},
		},
		"memory that is summed up nowhere": {
			prepare: func(f *fake) { delete(f.resources[sysURI], "MemorySummary") },
			change:  func(i *model.Inventory) { i.MemoryBytes = 32 << 30 },
		},
		"a capacity that is absurd": {
			prepare: func(f *fake) {
				f.resources[sysURI]["MemorySummary"] = object{"TotalSystemMemoryGiB": 1e300}
				f.resources[dimm]["CapacityMiB"] = -5
			},
			change: func(i *model.Inventory) { i.MemoryBytes, i.Memory = 0, nil },
		},
		"a MAC address that is none": {
			prepare: func(f *fake) { f.resources[nic]["MACAddress"] = "unknown" },
			change:  func(i *model.Inventory) { i.NetworkInterfaces[0].MACAddress = "" },
		},
		"a permanent MAC address only": {
			prepare: func(f *fake) {
				f.resources[nic]["MACAddress"] = ""
				f.resources[nic]["PermanentMACAddress"] = "12446A3B0411"
			},
		},
		"a permanent MAC address beside another one": {
			prepare: func(f *fake) { f.resources[nic]["PermanentMACAddress"] = "12446A3B8890" },
			change:  func(i *model.Inventory) { i.MACAddresses = []string{"12:44:6a:3b:88:90"} },
		},
		"an interface that leads to the BMC, as of a Lenovo": {
			prepare: func(f *fake) {
				f.resources[sysURI+"/EthernetInterfaces"] = listed(sysURI+"/EthernetInterfaces/Host", nic)
				f.resources[sysURI+"/EthernetInterfaces/Host"] = object{
					"Id": "Host", "Name": "Host Ethernet Interface", "MACAddress": "0a:8f:c3:a5:8a:71",
					"Links": object{"HostInterface": linked("/redfish/v1/Managers/BMC/HostInterfaces/1")},
				}
			},
		},
		"one that leads to the BMC and only its name says so": {
			prepare: func(f *fake) {
				f.resources[sysURI+"/EthernetInterfaces"] = listed(sysURI+"/EthernetInterfaces/ToManager", nic)
				f.resources[sysURI+"/EthernetInterfaces/ToManager"] = object{
					"Id": "ToManager", "Name": "Host", "MACAddress": "0a:8f:c3:a5:8a:71",
				}
			},
		},
		"network cards that are no interfaces, as of a UCS X210c": {
			prepare: func(f *fake) {
				f.cards(
					object{
						"Id": "1", "Name": "1",
						"Ethernet": object{"MACAddress": "2C:5A:0F:6F:6C:01", "PermanentMACAddress": "2C:5A:0F:6F:6C:02"},
					},
					object{
						"Id": "2", "Name": "2",
						"Ethernet": object{"MACAddress": "00:00:00:00:00:00", "PermanentMACAddress": "2C:5A:0F:6F:6C:00"},
					},
					object{"Id": "3", "Name": "3", "NetDevFuncType": "FibreChannel"})
			},
			change: func(i *model.Inventory) {
				i.MACAddresses = []string{"2c:5a:0f:6f:6c:00", "2c:5a:0f:6f:6c:01", "2c:5a:0f:6f:6c:02"}
			},
		},
		"a network card that shows its MAC addresses by port": {
			prepare: func(f *fake) {
				f.cards(object{"Id": "1", "Name": "1"})
				f.resources[cards+"/1"]["Ports"] = linked(cards + "/1/Ports")
				f.resources[cards+"/1/Ports"] = listed(cards+"/1/Ports/1", cards+"/1/Ports/2")
				f.resources[cards+"/1/Ports/1"] = object{
					"Id": "1", "Name": "1", "AssociatedNetworkAddresses": []any{"51:40:2E:C0:20:89:B2:A2", "58:a2:e1:48:93:af"},
				}
				f.resources[cards+"/1/Ports/2"] = object{
					"Id": "2", "Name": "2", "Ethernet": object{"AssociatedMACAddresses": []any{"58:a2:e1:48:93:ae"}},
				}
			},
			change: func(i *model.Inventory) { i.MACAddresses = []string{"58:a2:e1:48:93:ae", "58:a2:e1:48:93:af"} },
		},
		"a network card that shows them by port, as of older BMCs": {
			prepare: func(f *fake) {
				f.cards()
				delete(f.resources, cards+"/1/NetworkDeviceFunctions")
				f.resources[cards+"/1"]["NetworkPorts"] = linked(cards + "/1/NetworkPorts")
				f.resources[cards+"/1/NetworkPorts"] = listed(cards + "/1/NetworkPorts/1")
				f.resources[cards+"/1/NetworkPorts/1"] = object{"Id": "1", "Name": "1", "AssociatedNetworkAddresses": []any{"00620B4C2851"}}
			},
			change: func(i *model.Inventory) { i.MACAddresses = []string{"00:62:0b:4c:28:51"} },
		},
		"a link to network cards that leads nowhere": {
			prepare: func(f *fake) { f.resources[sysURI]["NetworkInterfaces"] = linked(cards) },
		},
		"more network functions than any machine has": {
			prepare: func(f *fake) {
				var all []object
				for n := range model.MaxServerMACs + 5 {
					all = append(all, object{
						"Id": strconv.Itoa(n), "Name": "f",
						"Ethernet": object{"MACAddress": fmt.Sprintf("02:00:00:00:00:%02x", n)},
					})
				}
				f.cards(all...)
			},
			change: func(i *model.Inventory) {
				for n := range model.MaxServerMACs {
					i.MACAddresses = append(i.MACAddresses, fmt.Sprintf("02:00:00:00:00:%02x", n))
				}
			},
		},
		"simple storage, as of older BMCs": {
			prepare: func(f *fake) {
				f.resources[sysURI]["SimpleStorage"] = f.resources[sysURI]["Storage"]
				delete(f.resources[sysURI], "Storage")
				f.resources[sysURI+"/Storage/RAID"] = object{"Name": "Simple", "Devices": []any{
					object{
						"Name": "sda", "Manufacturer": "Contoso", "CapacityBytes": "1000"}, object{"Name": "sdb",
						"Status": object{"State": "Absent"},
					},
				}}
			},
			change: func(i *model.Inventory) {
				i.Storages = []model.Storage{{Name: "Simple", Drives: []model.Drive{{Name: "sda", Vendor: "Contoso", Bytes: 1000}}}}
			},
		},
		"simple storage beside a storage without drives": {
			prepare: func(f *fake) {
				f.resources[sysURI]["SimpleStorage"] = linked(sysURI + "/SimpleStorage")
				f.resources[sysURI+"/SimpleStorage"] = listed(sysURI+"/SimpleStorage/1", sysURI+"/SimpleStorage/2")
				f.resources[sysURI+"/SimpleStorage/1"] = object{"Name": "Simple", "Devices": []any{object{"Name": "sda"}}}
				f.resources[sysURI+"/SimpleStorage/2"] = object{"Name": "Empty", "Devices": []any{}}
				f.resources[sysURI+"/Storage/RAID"]["Drives"] = []any{}
				delete(f.resources[sysURI+"/Storage/RAID"], "Volumes")
			},
			change: func(i *model.Inventory) {
				i.Storages = []model.Storage{
					{Name: "Contoso RAID", State: "Enabled"}, {Name: "Simple", Drives: []model.Drive{{Name: "sda"}}},
				}
				i.Summarized = []string{model.PartDrives}
			},
		},
		"simple storage beside a storage that fails": {
			prepare: func(f *fake) {
				f.resources[sysURI]["SimpleStorage"] = linked(sysURI + "/SimpleStorage")
				f.resources[sysURI+"/SimpleStorage"] = listed(sysURI + "/SimpleStorage/1")
				f.resources[sysURI+"/SimpleStorage/1"] = object{"Name": "Simple", "Devices": []any{object{"Name": "sda"}}}
				failing(sysURI+"/Storage", http.StatusInternalServerError, "Base.1.0.InternalError")(f)
			},
			change: func(i *model.Inventory) {
				i.Storages = []model.Storage{{Name: "Simple", Drives: []model.Drive{{Name: "sda"}}}}
				i.Summarized = []string{model.PartDrives}
			},
			problems: []string{"storage: bmc bmc-1: GET " + sysURI +
				"/Storage: 500 Internal Server Error: A general error. This is Base.1.0.InternalError."},
		},
		"a drive that is listed twice": {
			prepare: func(f *fake) {
				raid := f.resources[sysURI+"/Storage/RAID"]
				raid["Drives"] = append(raid["Drives"].([]any), linked(sysURI+"/Storage/RAID/Drives/0"))
			},
		},
		"processors that are summed up alone": {
			prepare: func(f *fake) {
				f.resources[sysURI]["ProcessorSummary"] = object{"Count": 2, "CoreCount": 16, "LogicalProcessorCount": 32, "Model": "Xeon"}
				f.resources[sysURI+"/Processors"] = listed()
			},
			change: func(i *model.Inventory) {
				cpu := model.Processor{ID: "1", Type: "CPU", Model: "Xeon", TotalCores: 8, TotalThreads: 16}
				i.Processors = []model.Processor{cpu, cpu}
				i.Processors[1].ID = "2"
				i.Summarized = []string{model.PartProcessors}
			},
		},
		"processors that fail and are summed up": {
			prepare: func(f *fake) {
				f.resources[sysURI]["ProcessorSummary"] = object{"Count": 1, "Model": "Xeon"}
				failing(sysURI+"/Processors", http.StatusInternalServerError, "Base.1.0.InternalError")(f)
			},
			change: func(i *model.Inventory) {
				i.Processors = []model.Processor{{ID: "1", Type: "CPU", Model: "Xeon"}}
				i.Summarized = []string{model.PartProcessors}
			},
			problems: []string{"processors: bmc bmc-1: GET " + sysURI +
				"/Processors: 500 Internal Server Error: A general error. This is Base.1.0.InternalError."},
		},
		"a number of processors that is absurd": {
			prepare: func(f *fake) {
				f.resources[sysURI]["ProcessorSummary"] = object{"Count": -1}
				f.resources[sysURI+"/Processors"] = listed()
			},
			change: func(i *model.Inventory) { i.Processors = nil },
		},
		"cards that only their chassis shows": {
			prepare: func(f *fake) { f.chassisCards(sysURI) },
			change: func(i *model.Inventory) {
				i.NetworkInterfaces, i.MACAddresses = nil, []string{"02:00:00:00:00:01"}
			},
		},
		"cards of a chassis that the machine shares": {
			prepare: func(f *fake) { f.chassisCards(sysURI, "/redfish/v1/Systems/2") },
			change:  func(i *model.Inventory) { i.NetworkInterfaces = nil },
		},
		"cards of a chassis that does not say what it holds, of the only system": {
			prepare: func(f *fake) { f.chassisCards() },
			change: func(i *model.Inventory) {
				i.NetworkInterfaces, i.MACAddresses = nil, []string{"02:00:00:00:00:01"}
			},
		},
		"cards of a chassis that does not say what it holds, of one of two systems": {
			prepare: func(f *fake) {
				f.chassisCards()
				f.resources["/redfish/v1/Systems"] = listed(sysURI, "/redfish/v1/Systems/2")
			},
			change: func(i *model.Inventory) { i.NetworkInterfaces = nil },
		},
		"cards of a chassis that does not say what it holds, of one of two systems on two pages": {
			prepare: func(f *fake) {
				f.chassisCards()
				f.resources["/redfish/v1/Systems"]["Members@odata.nextLink"] = "/redfish/v1/Systems?$skip=1"
			},
			change: func(i *model.Inventory) { i.NetworkInterfaces = nil },
		},
		"cards of a chassis that does not say what it holds, of a system of which the BMC counts two": {
			prepare: func(f *fake) {
				f.chassisCards()
				f.resources["/redfish/v1/Systems"]["Members@odata.count"] = 2
			},
			change: func(i *model.Inventory) { i.NetworkInterfaces = nil },
		},
		"cards of a chassis that does not say what it holds, where the only system is another": {
			prepare: func(f *fake) {
				f.chassisCards()
				f.resources["/redfish/v1/Systems"] = listed("/redfish/v1/Systems/2")
			},
			change: func(i *model.Inventory) { i.NetworkInterfaces = nil },
		},
		"a card whose parts only the chassis shows": {
			prepare: func(f *fake) {
				f.cards(object{"Id": "1", "Name": "f", "Ethernet": object{"MACAddress": "02:00:00:00:00:01"}})
				f.resources["/adapter"] = f.resources[cards+"/1"]
				f.resources[cards+"/1"] = object{"Id": "1", "Name": "1", "Links": object{"NetworkAdapter": linked("/adapter")}}
			},
			change: func(i *model.Inventory) { i.MACAddresses = []string{"02:00:00:00:00:01"} },
		},
		"a serial number with what its memory held": {
			prepare: func(f *fake) {
				f.resources[sysURI]["SerialNumber"] = "S\u00001\n " + strings.Repeat("x", 5000)
			},
			change: func(i *model.Inventory) { i.SerialNumber = "S 1 " + strings.Repeat("x", 252) + "…" },
		},
		"a boot order": {
			prepare: func(f *fake) { f.resources[sysURI]["Boot"].(object)["BootOrder"] = []any{"Boot0002", "Boot0000"} },
			change:  func(i *model.Inventory) { i.BootOrder = []string{"Boot0002", "Boot0000"} },
		},
		"a boot order without end": {
			prepare: func(f *fake) {
				f.resources[sysURI]["Boot"].(object)["BootOrder"] = strings.Split(strings.Repeat("Boot0002 ", 9999), " ")
			},
			change: func(i *model.Inventory) { i.BootOrder = slices.Repeat([]string{"Boot0002"}, 64) },
		},
		"a light that is a truth": {
			prepare: func(f *fake) {
				delete(f.resources[sysURI], "IndicatorLED")
				f.resources[sysURI]["LocationIndicatorActive"] = true
			},
			change: func(i *model.Inventory) { i.IndicatorLED, i.IndicatorOnOff = "Lit", true },
		},
	}
	want := func(t *testing.T) *model.Inventory {
		f := newFake(t, plain)
		facts, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
		if err != nil || len(facts.Inventory.Processors) != 1 {
			t.Fatalf("got %+v, %v", facts, err)
		}
		return facts.Inventory
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := want(t)
			if tt.change != nil {
				tt.change(want)
			}
			want.Problems = tt.problems
			f := newFake(t, plain)
			tt.prepare(f)
			got := must.Get(newPool(t, Options{}).Inventory(context.Background(), f.system1()))(t)
			for i, p := range got.Inventory.Problems { // with or without the query
				got.Inventory.Problems[i] = strings.ReplaceAll(p, "?$expand=.($levels=1)", "")
			}
			if diff := cmp.Diff(want, got.Inventory); diff != "" {
				t.Errorf("inventory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInventoryOfABMCThatStopsAnswering(t *testing.T) {
	f := newFake(t, plain)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == sysURI || !strings.HasPrefix(r.URL.Path, sysURI+"/") {
			return false
		}
		panic(http.ErrAbortHandler) // drops the connection
	}
	got, err := newPool(t, Options{}).Inventory(context.Background(), f.system1())
	if err != nil || got.Inventory.Model != "3500" || len(got.Inventory.Problems) != 3 {
		t.Errorf("got %+v, %v; want what was read and three problems", got, err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	f.change(func() {
		f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == sysURI+"/Memory" {
				cancel()
				<-r.Context().Done()
			}
			return false
		}
	})
	if _, err := newPool(t, Options{}).Inventory(ctx, f.system1()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Some BMCs repeat in an error what they were sent.
func TestErrorsHoldNoSecrets(t *testing.T) {
	f := newFake(t, plain)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != sysURI {
			return false
		}
		fail(w, http.StatusInternalServerError, "token "+r.Header.Get("X-Auth-Token")+" password "+password)
		return true
	}
	_, err := newPool(t, Options{}).Power(context.Background(), f.system1())
	if err == nil || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "token-") ||
		!strings.Contains(err.Error(), "[redacted]") {
		t.Errorf("got %v", err)
	}
}

// Secure Boot counts as on only where it is said to be, and nobody has switched it off since.
func TestSecureBootOfAMachine(t *testing.T) {
	const uri = sysURI + "/SecureBoot"
	for title, tc := range map[string]struct {
		says object // nil = the link leads nowhere
		on   bool
	}{
		"on":                                {object{"SecureBootCurrentBoot": "Enabled", "SecureBootEnable": true}, true},
		"on, and nothing of the next start": {object{"SecureBootCurrentBoot": "Enabled"}, true},
		"off":                               {object{"SecureBootCurrentBoot": "Disabled", "SecureBootEnable": false}, false},
		"off from the next start on":        {object{"SecureBootCurrentBoot": "Enabled", "SecureBootEnable": false}, false},
		"on from the next start on":         {object{"SecureBootCurrentBoot": "Disabled", "SecureBootEnable": true}, false},
		"not known":                         {object{"SecureBootEnable": true, "SecureBootCurrentBoot": nil}, false},
		"said in another form":              {object{"SecureBootEnable": "yes", "SecureBootCurrentBoot": 1}, false},
		"nowhere":                           {nil, false},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t, secure)
			f.resources[sysURI]["SecureBoot"] = linked(uri)
			if tc.says != nil {
				f.resources[uri] = tc.says
			}
			facts := must.Get(newPool(t, Options{RequestsPerSecond: 1000}).Inventory(t.Context(), f.system1()))(t)
			if facts.Inventory.SecureBoot != tc.on || len(facts.Inventory.Problems) > 0 {
				t.Errorf("Secure Boot %t, problems %q; want %t and none", facts.Inventory.SecureBoot, facts.Inventory.Problems, tc.on)
			}
		})
	}
}

package bmc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// Onboarding a machine, claiming it once and healing its power once takes at most 29 requests, three connections and
// one session. Before each change the machine is identified, by an answer that is at most two seconds old.
func TestBudget(t *testing.T) {
	f := newFake(t, secure)
	f.etag = func(o object) string { return `"` + o["PowerState"].(string) + `"` }
	now := newClock()
	p := newPool(t, Options{RequestsPerSecond: 100, Clock: now.Now})
	ctx, s := context.Background(), f.system1()

	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"discover", func() error { _, err := p.Discover(ctx, s.BMC); return err }, []string{
			"GET /redfish/v1/", login,
			"GET /redfish/v1/Systems?$expand=.($levels=1)", "GET /redfish/v1/Managers?$expand=.($levels=1)",
		}},
		{"inventory", func() error { _, err := p.Inventory(ctx, s); return err }, []string{
			"GET " + sysURI + "/Processors?$expand=.($levels=1)", "GET " + sysURI + "/Memory?$expand=.($levels=1)",
			"GET " + sysURI + "/Storage?$expand=.($levels=2)", "GET " + sysURI + "/Storage/RAID/Volumes?$expand=.($levels=1)",
			"GET " + sysURI + "/EthernetInterfaces?$expand=.($levels=1)",
		}},
		{"confirm off", func() error {
			now.add(time.Second)
			_, err := p.Power(ctx, s)
			now.add(time.Second)
			_, again := p.Power(ctx, s)
			return errors.Join(err, again)
		}, []string{"GET " + sysURI, "GET " + sysURI}},
		{"override", func() error { _, err := p.BootOnce(ctx, s, model.BootUEFIHTTP); return err },
			[]string{"PATCH " + sysURI, "GET " + sysURI}},
		{"power on", func() error { return errOf(p.Reset(ctx, s, model.ResetOn, "")) },
			[]string{"POST " + sysURI + "/Actions/ComputerSystem.Reset"}},
		{"poll", func() error { _, err := p.Power(ctx, s); return err }, []string{"GET " + sysURI}},
		{"power off", func() error { now.add(time.Minute); return errOf(p.Reset(ctx, s, model.ResetGracefulOff, "")) },
			[]string{"GET " + sysURI, "POST " + sysURI + "/Actions/ComputerSystem.Reset"}},
		{"poll until off", func() error {
			for range 3 {
				if _, err := p.Power(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}, []string{"GET " + sysURI, "GET " + sysURI, "GET " + sysURI}},
		{"override for the claim", func() error { now.add(time.Minute); _, err := p.BootOnce(ctx, s, model.BootUEFIHTTP); return err },
			[]string{"GET " + sysURI, "PATCH " + sysURI, "GET " + sysURI}},
		{"power on for the claim", func() error { return errOf(p.Reset(ctx, s, model.ResetOn, "")) },
			[]string{"POST " + sysURI + "/Actions/ComputerSystem.Reset"}},
		{"poll until on", func() error { _, err := p.Power(ctx, s); return err }, []string{"GET " + sysURI}},
		{"override to heal", func() error {
			now.add(time.Minute)
			f.change(func() { f.resources[sysURI]["PowerState"] = "Off" })
			_, err := p.BootOnce(ctx, s, model.BootDisk)
			return err
		},
			[]string{"GET " + sysURI, "PATCH " + sysURI, "GET " + sysURI}},
		{"power on to heal", func() error { return errOf(p.Reset(ctx, s, model.ResetOn, "")) },
			[]string{"POST " + sysURI + "/Actions/ComputerSystem.Reset"}},
	}
	total := 0
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		asked := f.requests()
		total += len(asked)
		if diff := cmp.Diff(step.want, asked); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", step.name, diff)
		}
	}
	stats := p.Stats("bmc-1")
	if total > 29 || stats.Requests != uint64(total) {
		t.Errorf("%d requests, %d counted; want at most 29", total, stats.Requests)
	}
	if f.opened > 3 || stats.Connections != uint64(f.opened) || stats.Sessions != 1 {
		t.Errorf("%d connections, counted %+v; want at most 3 and one session", f.opened, stats)
	}
}

func TestDiscoverAndInventory(t *testing.T) {
	wantBMC := &model.BMCFacts{
		Name: "bmc-1", UUID: "58893887-8974-2487-2389-841168418919", Manufacturer: "Contoso", Model: "Joo Janta 200",
		SKU: "PN", SerialNumber: "SN", FirmwareVersion: "1.45", Power: model.PowerOn,
		LastResetTime: time.Date(2026, 3, 9, 1, 38, 30, 0, time.UTC),
		Systems:       []model.SystemFact{{URI: sysURI, UUID: "38947555-7742-3448-3784-823347823834", Power: model.PowerOff}},
	}
	wantServer := &model.ServerFacts{Power: model.PowerOff, Inventory: &model.Inventory{
		UUID: "38947555-7742-3448-3784-823347823834", Manufacturer: "Contoso", Model: "3500", SKU: "8675309",
		SerialNumber: "437XR1138R2", BIOSVersion: "P79 v1.45", IndicatorLED: "Off", MemoryBytes: 96 << 30,
		Processors: []model.Processor{{
			ID: "CPU1", Type: "CPU", Architecture: "x86", InstructionSet: "x86-64", Manufacturer: "Intel", Model: "Xeon",
			MaxSpeedMHz: 3700, TotalCores: 8, TotalThreads: 16,
		}},
		Memory: []model.MemoryModule{{
			ID: "DIMM1", Bytes: 32 << 30, Type: "DDR4", SpeedMHz: 2400, Manufacturer: "Micron", SerialNumber: "M1", PartNumber: "P1",
		}},
		Storages: []model.Storage{{
			Name: "Contoso RAID", State: "Enabled",
			Volumes: []model.Volume{{Name: "boot", Bytes: 1000, State: "Enabled", RAIDType: "RAID1"}},
			Drives: []model.Drive{
				{Name: "Drive 0", MediaType: "SSD", Type: "NVMe", Bytes: 960197124096, Vendor: "Samsung", Model: "PM", SerialNumber: "S0",
					State: "Enabled", Bay: "/redfish/v1/Systems/1/Storage/RAID/Drives/0",
					IDs:     []string{"0025385b71b00001"},
					Volumes: []model.DiskVolume{{Name: "boot", Bytes: 1000, IDs: []string{"600508b1001c123456789abcdef01234"}}}},
				{Name: "Drive 1", SerialNumber: "S1", Bay: "/redfish/v1/Systems/1/Storage/RAID/Drives/1"},
			},
		}},
		NetworkInterfaces: []model.NetworkInterface{{
			Name: "NIC1", MACAddress: "12:44:6a:3b:04:11", CarrierStatus: "up", IPs: []string{"192.0.2.10"},
		}},
		BootTargets: []string{"None", "Pxe", "Hdd", "UefiHttp"},
	}}
	tests := map[string]func(*fake){
		"of a service that expands two levels": func(*fake) {},
		"of a service that cannot say levels":  func(f *fake) { delete(expandQuery(f), "Levels"); f.expand = false },
		"of a service that expands nothing": func(f *fake) {
			delete(f.resources["/redfish/v1/"], "ProtocolFeaturesSupported")
		},
		"of a service that does not expand as it promises": func(f *fake) { f.expand = false },
		"of a service that refuses to expand as it promises": func(f *fake) {
			f.answer = refuseQuery
		},
		"of a service that pages (B26)": func(f *fake) {
			f.expand = false
			f.resources[sysURI+"/Memory"]["Members"] = []any{}
			f.resources[sysURI+"/Memory"]["Members@odata.nextLink"] = sysURI + "/MemoryPage2"
			f.resources[sysURI+"/MemoryPage2"] = object{"Members": []any{
				object{"@odata.id": sysURI + "/Memory/DIMM1"}, object{"@odata.id": sysURI + "/Memory/Gone"},
			}, "Members@odata.nextLink": sysURI + "/Memory"} // and round again
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			prepare(f)
			p := newPool(t, Options{})
			bmc := must.Get(p.Discover(context.Background(), f.target()))(t)
			if diff := cmp.Diff(wantBMC, bmc); diff != "" {
				t.Errorf("BMC (-want +got):\n%s", diff)
			}
			server := must.Get(p.Inventory(context.Background(), f.system1()))(t)
			if diff := cmp.Diff(wantServer, server); diff != "" {
				t.Errorf("server (-want +got):\n%s", diff)
			}
		})
	}
}

// A service that expands by one level is asked for each storage subsystem with its
// drives, and not for each drive.
func TestStorageOfAServiceThatExpandsOneLevel(t *testing.T) {
	f := newFake(t, plain)
	expandQuery(f)["MaxLevels"] = 1
	p := newPool(t, Options{})
	got := must.Get(p.Inventory(context.Background(), f.system1()))(t)
	if s := got.Inventory.Storages; len(s) != 1 || len(s[0].Drives) != 2 || len(s[0].Volumes) != 1 {
		t.Errorf("got %+v, want two drives and a volume", s)
	}
	var asked []string
	for _, r := range f.requests() {
		if strings.Contains(r, "/Storage") {
			asked = append(asked, r)
		}
	}
	want := []string{
		"GET " + sysURI + "/Storage?$expand=.($levels=1)", "GET " + sysURI + "/Storage/RAID?$expand=.($levels=1)",
		"GET " + sysURI + "/Storage/RAID/Volumes?$expand=.($levels=1)",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

package qemu_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/bmc/sim/qemu"
	"ingot/model"
	"ingot/model/must"
)

var oneNIC = qemu.Machine{Taps: []string{""}}

func override(t *testing.T, s *sim.Server, enabled, target string) {
	t.Helper()
	body := fmt.Sprintf(`{"Boot":{"BootSourceOverrideEnabled":%q,"BootSourceOverrideTarget":%q}}`, enabled, target)
	if a := simtest.Dial(t, s.BMC()).Do(http.MethodPatch, s.URI(), body); a.Status != http.StatusOK {
		t.Fatalf("override: %d %v", a.Status, a.Body)
	}
}

func said(s *sim.Server, words string) bool {
	return slices.ContainsFunc(s.Events(), func(e sim.Event) bool { return strings.Contains(e.What, words) })
}

func sources(s *sim.Server) []string {
	var all []string
	for _, b := range s.Boots() {
		all = append(all, strings.TrimSpace(string(b.From)+" "+string(b.Outcome)))
	}
	return all
}

// places are the boot order that qemu was told last: the devices that have a
// place, in the order of their being set.
func places(told []string) string {
	var order []string
	for _, line := range told {
		_, after, set := strings.Cut(line, `qom-set {"path":"/machine/peripheral/`)
		if !set {
			continue
		}
		device, value, _ := strings.Cut(after, `"`)
		if strings.Contains(value, `"value":-1`) {
			order = slices.DeleteFunc(order, func(o string) bool { return strings.HasPrefix(o, device) })
			continue
		}
		order = append(order, device+strings.TrimSuffix(value[strings.LastIndex(value, ":"):], "}"))
	}
	return strings.Join(order, " ")
}

func starts(told []string) []string {
	return slices.DeleteFunc(slices.Clone(told), func(l string) bool { return !strings.HasPrefix(l, "start ") })
}

func TestAMachineOfQEMUBootsTheNetworkOnce(t *testing.T) {
	s, told := faked(t, guestDeaf, oneNIC)
	override(t, s, "Once", "Pxe")
	simtest.Reset(t, s, "On")
	simtest.Powered(t, s, model.PowerOn)
	if enabled, target, mode := s.Override(); enabled != "Disabled" || target != "None" || mode != "Legacy" {
		t.Errorf("override is %s %s %s", enabled, target, mode)
	}
	if first := starts(told())[0]; !strings.Contains(first, "id=nic0,mac="+s.MAC(0)+",bootindex=1") || !strings.Contains(first, s.UUID()) {
		t.Errorf("started with %s", first)
	}
	simtest.Eventually(t, "the next boot is from disk", func() bool { return places(told()) == "disk0:1" })

	override(t, s, "Once", "Pxe")
	simtest.Eventually(t, "the next boot is from the network", func() bool { return places(told()) == "nic0:1 disk0:2" })
	simtest.Reset(t, s, "ForceRestart")
	simtest.Eventually(t, "and the one after it from disk", func() bool { return len(s.Boots()) == 2 && places(told()) == "disk0:1" })
	if diff := cmp.Diff([]string{"network cut", "network"}, sources(s)); diff != "" {
		t.Errorf("boots (-want +got):\n%s", diff)
	}
	if enabled, _, _ := s.Override(); enabled != "Disabled" || len(starts(told())) != 1 || s.PowerOns() != 1 {
		t.Errorf("override %s, %d processes, %d times on", enabled, len(starts(told())), s.PowerOns())
	}
}

func TestAnOverrideThatContinuesIsKept(t *testing.T) {
	s, told := faked(t, guestDeaf, oneNIC)
	override(t, s, "Continuous", "Pxe")
	simtest.Reset(t, s, "On")
	simtest.Eventually(t, "the next boot is from the network, too", func() bool {
		return s.Power() == model.PowerOn && places(told()) == "nic0:1 disk0:2"
	})
	simtest.Reset(t, s, "ForceRestart")
	simtest.Eventually(t, "it boots again", func() bool { return len(s.Boots()) == 2 })
	if enabled, target, _ := s.Override(); enabled != "Continuous" || target != "Pxe" || sources(s)[1] != "network" {
		t.Errorf("override %s %s, boots %v", enabled, target, sources(s))
	}
	s.SetNetworkFirst(false)
	override(t, s, "Disabled", "None")
	simtest.Eventually(t, "the next boot is from disk", func() bool { return places(told()) == "disk0:1" })
	s.SetNetworkFirst(true)
	simtest.Eventually(t, "the next boot is from the network", func() bool { return places(told()) == "nic0:1 disk0:2" })
}

func TestAnIgnoredOverrideIsUsedUp(t *testing.T) {
	s, told := faked(t, guestDeaf, oneNIC)
	set(t, s, sim.FaultOverrideIgnored)
	override(t, s, "Once", "Pxe")
	simtest.Reset(t, s, "On")
	simtest.Powered(t, s, model.PowerOn)
	enabled, _, _ := s.Override()
	if enabled != "Disabled" || sources(s)[0] != "disk" || strings.Contains(starts(told())[0], "nic0,mac="+s.MAC(0)+",bootindex") {
		t.Errorf("override %s, boots %v", enabled, sources(s))
	}
}

func TestHTTPBootTakesAnotherProcessWithoutLossOfPower(t *testing.T) {
	s, told := faked(t, guestDeaf, qemu.Machine{Firmware: qemu.FirmwareUEFI, OVMFDir: ovmf(t), Taps: []string{""}})
	simtest.Reset(t, s, "On")
	simtest.Powered(t, s, model.PowerOn)
	override(t, s, "Once", "UefiHttp")
	simtest.Reset(t, s, "ForceRestart")
	simtest.Eventually(t, "another process runs", func() bool { return len(starts(told())) == 2 && len(s.Boots()) == 2 })
	const knob = "opt/org.tianocore/IPv4PXESupport,string=no"
	if both := starts(told()); strings.Contains(both[0], knob) || !strings.Contains(both[1], knob) {
		t.Errorf("started with\n%s", strings.Join(both, "\n"))
	}
	if s.Power() != model.PowerOn || s.PowerOns() != 1 || sources(s)[1] != "network" {
		t.Errorf("power %s, %d times on, boots %v", s.Power(), s.PowerOns(), sources(s))
	}
}

// ovmf is a folder of firmware for a qemu that does not run it.
func ovmf(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	return dir
}

func TestUEFIVariablesAreThoseOfTheFactoryAtEachPowerOn(t *testing.T) {
	s, _ := faked(t, guestDeaf, qemu.Machine{Firmware: qemu.FirmwareUEFI, OVMFDir: ovmf(t)})
	vars := strings.TrimSuffix(s.Console(), "console.log") + "vars.fd"
	for range 2 {
		simtest.Reset(t, s, "On")
		simtest.Powered(t, s, model.PowerOn)
		if raw, err := os.ReadFile(vars); string(raw) != "OVMF_VARS_4M.fd" {
			t.Errorf("variables %q, %v", raw, err)
		}
		must.Do(t, os.WriteFile(vars, []byte("changed"), 0o600))
		simtest.Reset(t, s, "ForceOff")
		simtest.Powered(t, s, model.PowerOff)
	}
	console, err := os.ReadFile(s.Console())
	if err != nil || strings.Count(string(console), "=== power on ") != 2 {
		t.Errorf("console %q, %v", console, err)
	}
}

func TestWhatTheGuestMakesOfThePowerButton(t *testing.T) {
	const deaf, on, off = guestDeaf, model.PowerOn, model.PowerOff
	tests := []struct {
		name   string
		guest  string
		reset  string
		fault  sim.Fault
		power  model.Power
		boots  []string
		starts int
	}{
		{"it ends", guestEnds, "GracefulShutdown", "", off, []string{"disk ended"}, 1},
		{"it ends when the button is pressed", guestEnds, "PushPowerButton", "", off, []string{"disk ended"}, 1},
		{"it ends to begin again", guestEnds, "GracefulRestart", "", on, []string{"disk ended", "disk"}, 2},
		{"it does nothing", deaf, "GracefulShutdown", "", on, []string{"disk"}, 1},
		{"it restarts", guestRestarts, "GracefulShutdown", "", on, []string{"disk ended", "disk"}, 1},
		{"it does not come to know", guestEnds, "GracefulShutdown", sim.FaultGracefulIgnored, on, []string{"disk"}, 1},
		{"a cycle does not ask", deaf, "PowerCycle", "", on, []string{"disk cut", "disk"}, 2},
		{"force does not ask", deaf, "ForceOff", "", off, []string{"disk cut"}, 1},
		{"a BMC that does nothing", deaf, "ForceOff", sim.FaultPowerOffIgnored, on, []string{"disk"}, 1},
		{"a disk that is full pauses it", diskFull, "GracefulShutdown", "", model.PowerPaused, []string{"disk"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, told := faked(t, tt.guest, qemu.Machine{})
			simtest.Reset(t, s, "On")
			simtest.Eventually(t, "the firmware has started", func() bool { return places(told()) == "disk0:1" })
			if tt.fault != "" {
				set(t, s, tt.fault)
			}
			simtest.Reset(t, s, tt.reset)
			simtest.Eventually(t, "it comes to what it should", func() bool {
				return s.Power() == tt.power && slices.Equal(sources(s), tt.boots) && len(starts(told())) == tt.starts
			})
			if on := s.PID() != 0; on != (s.Power() != model.PowerOff) {
				t.Errorf("process %d while %s", s.PID(), s.Power())
			}
		})
	}
}

func TestAQEMUThatDoesNotStartLeavesTheMachineOff(t *testing.T) {
	s, _ := faked(t, noTap, qemu.Machine{})
	simtest.Reset(t, s, "On")
	simtest.Eventually(t, "it is off again", func() bool { return s.Power() == model.PowerOff && said(s, "qemu does not start") })
	const why = "qemu: could not configure /dev/net/tun (tap0): Device or resource busy (a tap interface serves one machine at a time)"
	if last := s.Boots()[0]; !said(s, why) || last.Outcome != sim.OutcomeFailed || !strings.Contains(last.Error, "exit status 1: "+why) {
		t.Errorf("boot %+v, events %+v", last, s.Events())
	}
}

func TestAQEMUThatDoesNotQuitIsKilled(t *testing.T) {
	s, _ := faked(t, neverQuits, qemu.Machine{})
	simtest.Reset(t, s, "On")
	simtest.Powered(t, s, model.PowerOn)
	simtest.Reset(t, s, "ForceOff")
	if s.Power() != model.PowerPoweringOff {
		t.Errorf("it says %s while qemu is there", s.Power())
	}
	if a := simtest.TryReset(t, s, "On"); a.Status != http.StatusConflict {
		t.Errorf("On meanwhile: %d", a.Status)
	}
	simtest.Powered(t, s, model.PowerOff)
}

func TestAPowerFailureTakesTheProcessAlong(t *testing.T) {
	s, told := faked(t, guestDeaf, qemu.Machine{})
	simtest.Reset(t, s, "On")
	simtest.Powered(t, s, model.PowerOn)
	s.PowerCut()
	if s.Power() != model.PowerOff {
		t.Errorf("power %s", s.Power())
	}
	simtest.Reset(t, s, "On") // waits until the disk is free
	simtest.Eventually(t, "it is on again", func() bool { return s.Power() == model.PowerOn && len(starts(told())) == 2 })
	var turns []string
	for _, line := range told() {
		if what, _, _ := strings.Cut(line, " "); what == "start" || what == "end" {
			turns = append(turns, what)
		}
	}
	if diff := cmp.Diff([]string{"start", "end", "start"}, turns); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

func TestFaultsOfPretendedMachinesAreRefused(t *testing.T) {
	s, _ := faked(t, guestDeaf, qemu.Machine{})
	for _, f := range sim.Faults() {
		err := s.SetFault(f)
		pretended := slices.Contains([]sim.Fault{
			sim.FaultWipeFails, sim.FaultWipeHangs, sim.FaultProbeSilent, sim.FaultProbeOtherUUID,
			sim.FaultHangAfterScript, sim.FaultHangAfterKernel, sim.FaultBootStateSilent, sim.FaultCloudInitFails,
		}, f)
		if pretended && (err == nil || !strings.Contains(err.Error(), "is one of pretended machines") || s.BMC().SetFault(f) == nil) {
			t.Errorf("%s: %v", f, err)
		}
		if strings.HasPrefix(string(f), "power") && f != sim.FaultPowerCut && err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	s.SetRunning("debian")
	if s.Power() != model.PowerOff || !said(s, "cannot be found running") {
		t.Errorf("power %s, events %+v", s.Power(), s.Events())
	}
}

const httpOnce = `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"UefiHttp"}}`

func TestTheInventoryIsThatOfTheMachine(t *testing.T) {
	s, _ := faked(t, guestDeaf, qemu.Machine{Taps: []string{"", ""}, MemoryMiB: 768, Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 3}}})
	system := simtest.Dial(t, s.BMC()).Get(s.URI())
	if got := system["MemorySummary"].(map[string]any)["TotalSystemMemoryGiB"]; got != 0.75 {
		t.Errorf("memory %v", got)
	}
	cpus := system["ProcessorSummary"].(map[string]any)
	if cpus["Count"] != 1.0 || cpus["LogicalProcessorCount"] != 1.0 {
		t.Errorf("processors %v", cpus)
	}
	for i := range 2 {
		nic := simtest.Dial(t, s.BMC()).Get(fmt.Sprintf("%s/EthernetInterfaces/NIC%d", s.URI(), i+1))
		if nic["MACAddress"] != strings.ToUpper(s.MAC(i)) {
			t.Errorf("NIC %d: %v", i, nic)
		}
	}
	if n := simtest.Dial(t, s.BMC()).Get(s.URI() + "/EthernetInterfaces")["Members@odata.count"]; n != 2.0 {
		t.Errorf("%v NICs", n)
	}
	drive := simtest.Dial(t, s.BMC()).Get(s.URI() + "/Storage/1/Drives/Disk1")
	if drive["CapacityBytes"] != float64(3<<20) || drive["Protocol"] != "NVMe" {
		t.Errorf("drive %v", drive)
	}
	c := simtest.Dial(t, s.BMC())
	if a := c.Do(http.MethodPatch, s.URI(), httpOnce); a.Status != http.StatusBadRequest {
		t.Errorf("a BIOS takes UEFI HTTP boot: %d", a.Status)
	}
	if a := c.Do(http.MethodPatch, s.URI(), `{"Boot":{"HttpBootUri":"http://192.0.2.1/x.efi"}}`); a.Status != http.StatusBadRequest {
		t.Errorf("it takes a URL that the firmware does not follow: %d", a.Status)
	}
}

func TestDisksOutliveTheRackThatHasAFolderForThem(t *testing.T) {
	dir := t.TempDir()
	machine := func(mib int64) qemu.Machine {
		return qemu.Machine{Command: []string{os.Args[0]}, Disks: []qemu.Disk{{Bus: qemu.DiskVirtio, SizeMiB: mib}}}
	}
	rackOf := func(dir string, mib int64) (*sim.Rack, error) {
		return sim.New(sim.Options{StateDir: dir, Machines: qemu.Machines{machine(mib)}})
	}
	rack := must.Get(rackOf(dir, 1))(t)
	disk := rack.Servers()[0].DiskFiles()[0]
	must.Do(t, os.WriteFile(disk, append(make([]byte, 1<<20-1), 'x'), 0o600))
	rack.Close()
	again := must.Get(rackOf(dir, 1))(t)
	again.Close()
	if raw, err := os.ReadFile(disk); err != nil || len(raw) != 1<<20 || raw[len(raw)-1] != 'x' {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if _, err := rackOf(dir, 2); err == nil || !strings.Contains(err.Error(), "has 1 MiB and not 2") {
		t.Errorf("another size: %v", err)
	}
	passing := must.Get(rackOf("", 1))(t)
	file := passing.Servers()[0].DiskFiles()[0]
	if info, err := os.Stat(file); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	passing.Close()
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

func TestAMachineOfQEMUThatCannotBeIsRefused(t *testing.T) {
	here := []string{os.Args[0]}
	for _, tt := range []struct {
		name    string
		machine qemu.Machine
		want    string
	}{
		{
			name: "no such firmware", machine: qemu.Machine{Command: here, Firmware: "coreboot"},
			want: `firmware "coreboot": there are [bios uefi uefi-http]`,
		},
		{
			name:    "no firmware there",
			machine: qemu.Machine{Command: here, Firmware: qemu.FirmwareUEFI, OVMFDir: "/nowhere"},
			want:    "apt-get install ovmf",
		},
		{name: "no such program", machine: qemu.Machine{Command: []string{"/nowhere/qemu"}}, want: "/nowhere/qemu is not to be found"},
		{name: "too little memory", machine: qemu.Machine{Command: here, MemoryMiB: 1}, want: "1 MiB of memory: 16 to"},
		{
			name:    "no such bus",
			machine: qemu.Machine{Command: here, Disks: []qemu.Disk{{Bus: "floppy", SizeMiB: 1}}},
			want:    `disk on "floppy": there are [virtio sata nvme]`,
		},
		{name: "a disk of nothing", machine: qemu.Machine{Command: here, Disks: []qemu.Disk{{Bus: qemu.DiskNVMe}}}, want: "disk of 0 MiB"},
		{
			name:    "too many disks",
			machine: qemu.Machine{Command: here, Disks: slices.Repeat([]qemu.Disk{qemu.DefaultDisk}, 7)},
			want:    "at most 6",
		},
		{name: "too many NICs", machine: qemu.Machine{Command: here, Taps: make([]string, 9)}, want: "at most 8"},
		{
			name: "arguments in a tap's name", machine: qemu.Machine{Command: here, Taps: []string{"tap0,script=/x"}},
			want: "no name of an interface",
		},
		{
			name: "two NICs on a tap", machine: qemu.Machine{Command: here, Taps: []string{"tap0", "tap0"}},
			want: "one NIC can be plugged into it",
		},
		{
			name: "no such tap", machine: qemu.Machine{Taps: []string{"ingot-nowhere"}},
			want: "tap ingot-nowhere: there is no such interface in this network namespace; make it: ip tuntap add ingot-nowhere mode tap",
		},
		{name: "an interface that is no tap", machine: qemu.Machine{Taps: []string{"lo"}}, want: "tap lo: that interface is no tap"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rack, err := sim.New(sim.Options{Machines: qemu.Machines{tt.machine}, StateDir: t.TempDir()})
			if err == nil {
				rack.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("without qemu", func(t *testing.T) {
		t.Setenv("PATH", "")
		_, err := sim.New(sim.Options{Machines: qemu.Machines{{}}})
		if err == nil || !strings.Contains(err.Error(), "apt-get install qemu-system-x86") {
			t.Errorf("error %v", err)
		}
	})
	_, err := sim.New(sim.Options{BMCs: 2, Machines: qemu.Machines{{}}})
	if err == nil || !strings.Contains(err.Error(), "1 QEMU virtual machines for 2 servers") {
		t.Errorf("too few machines: %v", err)
	}
}

// The same with the real thing: SeaBIOS, a blank disk and a NIC without a cable.
func TestARealMachineBehindABMC(t *testing.T) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("NO REAL MACHINE IS TESTED: qemu-system-x86_64 is not installed (apt-get install qemu-system-x86 ipxe-qemu)")
	}
	rack := simtest.Start(t, sim.Options{
		StateDir: t.TempDir(),
		Machines: qemu.Machines{{MemoryMiB: 64, Taps: []string{""}, Disks: []qemu.Disk{{Bus: qemu.DiskVirtio, SizeMiB: 16}}}},
	})
	s := rack.Servers()[0]
	shows := func(want string) {
		t.Helper()
		simtest.Eventually(t, "the BMC shows "+want, func() bool { return simtest.Dial(t, s.BMC()).Get(s.URI())["PowerState"] == want })
	}
	boots := 0
	console := func(words string) { // of the boot that is under way
		t.Helper()
		simtest.Eventually(t, "the console shows "+words, func() bool {
			raw, _ := os.ReadFile(s.Console())
			parts := strings.Split(string(raw), "SeaBIOS (version")
			return len(parts) > boots+1 && strings.Contains(parts[len(parts)-1], words)
		})
		boots = strings.Count(string(mustRead(t, s.Console())), "SeaBIOS (version")
	}

	override(t, s, "Once", "Pxe")
	simtest.Reset(t, s, "On")
	shows("On")
	console("iPXE initialising devices")
	if enabled, _, _ := s.Override(); enabled != "Disabled" {
		t.Errorf("override is %s", enabled)
	}

	simtest.Reset(t, s, "ForceRestart")
	console("No bootable device")
	if diff := cmp.Diff([]string{"network cut", "disk"}, sources(s)); diff != "" {
		t.Errorf("boots (-want +got):\n%s", diff)
	}

	must.Do(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	shows("Off")
	if last := s.Boots()[1]; !said(s, "qemu died: signal: killed") || last.Outcome != sim.OutcomeFailed {
		t.Errorf("boot %+v, events %+v", last, s.Events())
	}

	simtest.Reset(t, s, "On")
	shows("On")
	began := time.Now()
	simtest.Reset(t, s, "ForceOff")
	shows("Off")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("off after %v", took)
	}
	if got := len(s.Resets()); got != 4 || s.PowerOns() != 2 {
		t.Errorf("%d resets, %d times on", got, s.PowerOns())
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

package sim_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

func sum(text string) string {
	d := sha256.Sum256([]byte(text))
	return hex.EncodeToString(d[:])
}

var fetchedAll = []model.BootStage{model.StageScript, model.StageKernel, model.StageInitrd, "squashfs", model.StageIgnition}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(simtest.Timeout):
		t.Fatalf("no %T within %v", *new(T), simtest.Timeout)
		panic("unreachable")
	}
}

func booted(t *testing.T, s *sim.Server, boots int, want sim.BootRecord) {
	t.Helper()
	got := lastBoot(t, s, boots)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(sim.BootRecord{}, "At")); diff != "" {
		t.Fatalf("boot (-want +got):\n%s\nevents: %v", diff, s.Events())
	}
}

func TestADiscoveryBootRegistersAsMetalprobeDoes(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL + "/"})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.probeIgnition(s.UUID()))
	bootOnce(t, s)

	got := receive(t, svc.registrations)
	booted(t, s, 1, sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll, Outcome: sim.OutcomeProbe})
	if got.SystemUUID != s.UUID() {
		t.Errorf("registered as %q, want %q", got.SystemUUID, s.UUID())
	}
	if len(got.Data.Storage) != 2 || len(got.Data.LLDP) != 2 || len(got.Data.NICs) != 2 {
		t.Errorf("inventory is incomplete: %+v", got.Data)
	}
	if got.Data.NetworkInterfaces[0].MACAddress != s.MAC(0) {
		t.Errorf("MAC %q, want %q", got.Data.NetworkInterfaces[0].MACAddress, s.MAC(0))
	}
	receive(t, svc.registrations) // it registers again and again
	if s.Disk() != nil || len(s.Installs()) != 0 {
		t.Errorf("a probe installed something: %+v", s.Disk())
	}
}

func TestAFailedRegistrationIsTriedAgain(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.probeIgnition(s.UUID()))
	svc.fail("/r/tok/register", 2)
	bootOnce(t, s)
	receive(t, svc.registrations)
	if n := svc.requests("/r/tok/register"); n < 3 {
		t.Errorf("registered after %d requests, want 3", n)
	}
}

func TestAClaimedImageIsInstalledAndBootsFromDiskAfterwards(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	s := rack.Servers()[0]
	ign := svc.imageIgnition(s.UUID())
	svc.offer(s.UUID(), ign)
	svc.fail("/ignition/"+s.UUID(), 2) // Ignition asks again
	svc.fail("/r/tok/bootstate", 1)    // and so does the unit that posts
	bootOnce(t, s)

	if got, want := receive(t, svc.bootStates), (model.ProbeBootState{SystemUUID: s.UUID(), Booted: true}); got != want {
		t.Errorf("boot state %+v, want %+v", got, want)
	}
	booted(t, s, 1, sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll, Outcome: sim.OutcomeInstalled})
	want := []sim.Install{{Image: "sha256:" + sum("blob kernel"), IgnitionSHA256: sum(ign)}}
	if diff := cmp.Diff(want, s.Installs(), cmpopts.IgnoreFields(sim.Install{}, "At")); diff != "" {
		t.Errorf("installs (-want +got):\n%s", diff)
	}
	if enabled, target, _ := s.Override(); enabled != "Disabled" || target != "None" {
		t.Errorf("override after the boot: %s %s", enabled, target)
	}

	simtest.Reset(t, s, "ForceRestart")
	booted(t, s, 2, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	simtest.Reset(t, s, "GracefulShutdown")
	simtest.Powered(t, s, model.PowerOff)
	simtest.Reset(t, s, "On")
	booted(t, s, 3, sim.BootRecord{From: sim.BootFromDisk, Outcome: sim.OutcomeDisk})
	if n := svc.requests("/ipxe/" + s.UUID()); n != 1 {
		t.Errorf("the script was fetched %d times, want once", n)
	}
	if len(svc.bootStates) != 0 {
		t.Error("a boot from disk posted a boot state")
	}
	if s.PowerOns() != 2 {
		t.Errorf("%d power-ons, want 2", s.PowerOns())
	}
}

func TestAWipeErasesTheDiskAndReportsEachDisk(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	tests := map[string]struct {
		mode   string
		fails  bool
		want   []string // method and result by disk
		erased bool
	}{
		"quick discards": {
			mode: "quick", want: []string{"blkdiscard wiped", "blkzeroout wiped"}, erased: true,
		},
		"secure overwrites": {
			mode: "secure", want: []string{"blksecdiscard wiped", "overwrite wiped"}, erased: true,
		},
		"none leaves the disks alone": {mode: "none", want: []string{" skipped", " skipped"}},
		"a disk that fails is reported with its error": {
			mode: "quick", fails: true,
			want: []string{"blkdiscard failed write: input/output error", "blkzeroout wiped"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := rack.Servers()[0]
			s.SetRunning("debian")
			s.PowerCut()
			if tt.fails {
				must.Do(t, s.SetFault(sim.FaultWipeFails, sim.FaultArgs{Disk: 0}))
				defer s.ClearFault(sim.FaultWipeFails)
			}
			svc.offer(s.UUID(), svc.wipeIgnition(s.UUID(), tt.mode))
			bootOnce(t, s)
			got := receive(t, svc.wipes)
			var results []string
			for _, d := range got.Disks {
				results = append(results, strings.TrimSuffix(d.Method+" "+d.Result+" "+d.Error, " "))
				if d.Serial == "" || d.SizeBytes == 0 || d.Model == "" {
					t.Errorf("disk %s is not described: %+v", d.Name, d)
				}
			}
			if diff := cmp.Diff(tt.want, results); diff != "" {
				t.Errorf("disks (-want +got):\n%s", diff)
			}
			if got.SystemUUID != s.UUID() || got.Mode != tt.mode {
				t.Errorf("report of %s, mode %s", got.SystemUUID, got.Mode)
			}
			if erased := s.Disk() == nil; erased != tt.erased {
				t.Errorf("erased %v, want %v", erased, tt.erased)
			}
			s.PowerCut()
		})
	}
}

func TestAWipeThatHangsTellsHowFarItCame(t *testing.T) {
	svc := newBootService(t)
	s := start(t, sim.Options{BootURL: svc.URL}).Servers()[0]
	svc.offer(s.UUID(), svc.wipeIgnition(s.UUID(), model.CleanupQuick))
	set(t, s, sim.FaultWipeHangs)
	bootOnce(t, s)
	got := receive(t, svc.progress)
	if got.SystemUUID != s.UUID() || got.Mode != model.CleanupQuick {
		t.Errorf("progress of %s, mode %s", got.SystemUUID, got.Mode)
	}
	var disks []string
	for _, d := range got.Disks {
		disks = append(disks, fmt.Sprintf("%s %d%% %s", d.Method, d.Percent, d.Result))
		if d.Name == "" || d.Serial == "" || d.SizeBytes == 0 {
			t.Errorf("a disk is not described: %+v", d)
		}
	}
	if diff := cmp.Diff([]string{"blkdiscard 50% ", "blkzeroout 50% "}, disks); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}
	select {
	case <-svc.wipes:
		t.Error("it is done all the same")
	case <-time.After(100 * time.Millisecond): // many times what is left of the wipe
	}
	unset(t, s, sim.FaultWipeHangs)
	if done := receive(t, svc.wipes); len(done.Disks) != len(got.Disks) {
		t.Errorf("the outcome has %d disks, the progress %d", len(done.Disks), len(got.Disks))
	}
}

func TestFirmwareGoesOnToTheDiskWhenTheNetworkHasNothing(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	s := rack.Servers()[0]
	tests := []struct {
		name   string
		script string // "" = 404
		disk   bool
		want   sim.BootRecord
	}{
		{
			name: "no ticket, empty disk", script: "", disk: false,
			want: sim.BootRecord{
				From: sim.BootFromNothing, Outcome: sim.OutcomeNoDevice,
				Error: "GET " + svc.URL + "/ipxe/" + s.UUID() + ": 404 Not Found",
			},
		},
		{
			name: "no ticket", script: "", disk: true,
			want: sim.BootRecord{
				From: sim.BootFromDisk, Outcome: sim.OutcomeDisk,
				Error: "GET " + svc.URL + "/ipxe/" + s.UUID() + ": 404 Not Found",
			},
		},
		{
			name: "exit", script: "#!ipxe\nexit\n", disk: true,
			want: sim.BootRecord{
				From: sim.BootFromDisk, Stages: []model.BootStage{model.StageScript},
				Outcome: sim.OutcomeDisk, Error: "the script exited",
			},
		},
		{
			name: "sanboot", script: "#!ipxe\nsanboot --drive 0x80\n", disk: true,
			want: sim.BootRecord{
				From: sim.BootFromDisk, Stages: []model.BootStage{model.StageScript},
				Outcome: sim.OutcomeDisk, Error: "the script exited",
			},
		},
		{
			name: "no script at all", script: "<html>", disk: true,
			want: sim.BootRecord{
				From: sim.BootFromDisk, Stages: []model.BootStage{model.StageScript}, Outcome: sim.OutcomeDisk,
				Error: "chain " + svc.URL + "/ipxe/" + s.UUID() + ": it does not begin with #!ipxe",
			},
		},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			svc.mu.Lock()
			svc.script = nil
			if tt.script != "" {
				svc.script = func(string) string { return tt.script }
			}
			svc.mu.Unlock()
			if tt.disk {
				s.SetRunning("debian")
				s.PowerCut()
			}
			bootOnce(t, s)
			booted(t, s, i+1, tt.want)
			s.PowerCut()
		})
	}
}

func TestTheBootOrderCountsWithoutAnOverride(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))

	s.PressPower()
	booted(t, s, 1, sim.BootRecord{From: sim.BootFromNothing, Outcome: sim.OutcomeNoDevice})
	if n := svc.requests("/ipxe/" + s.UUID()); n != 0 {
		t.Errorf("a disk-first machine asked the network %d times", n)
	}
	s.PowerCut()
	s.SetNetworkFirst(true)
	s.PressPower()
	booted(t, s, 2, sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll, Outcome: sim.OutcomeInstalled})
}

func TestAPowerCutEndsABootAtOnce(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL, Delays: sim.Delays{Boot: time.Hour}})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
	bootOnce(t, s)
	simtest.Eventually(t, "the Ignition is fetched", func() bool { return svc.requests("/ignition/"+s.UUID()) == 1 })
	s.PowerCut()
	booted(t, s, 1, sim.BootRecord{From: sim.BootFromNetwork, Stages: s.Boots()[0].Stages, Outcome: sim.OutcomeCut})
	if s.Power() != model.PowerOff || s.Disk() != nil {
		t.Errorf("after a power cut: power %s, disk %+v", s.Power(), s.Disk())
	}
}

func TestAServerFoundRunningObeysAGracefulShutdown(t *testing.T) {
	rack := start(t, sim.Options{})
	s := rack.Servers()[0]
	s.SetRunning("debian")
	if s.Power() != model.PowerOn || s.Disk().Image != "debian" || s.PowerOns() != 0 {
		t.Errorf("power %s, disk %+v, %d power-ons", s.Power(), s.Disk(), s.PowerOns())
	}
	simtest.Reset(t, s, "GracefulShutdown")
	simtest.Powered(t, s, model.PowerOff)
}

func TestNothingThatRunsHearsAGracefulShutdown(t *testing.T) {
	rack := start(t, sim.Options{})
	s := rack.Servers()[0]
	s.PressPower()
	lastBoot(t, s, 1)
	simtest.Reset(t, s, "GracefulShutdown")
	if s.Power() != model.PowerOn {
		t.Errorf("power %s, want On: nothing runs that would listen", s.Power())
	}
	simtest.Reset(t, s, "ForceOff")
	if s.Power() != model.PowerOff {
		t.Errorf("power %s after ForceOff, want Off at once", s.Power())
	}
}

func TestPowerTakesItsTime(t *testing.T) {
	rack := start(t, sim.Options{Delays: sim.Delays{PowerOn: time.Hour, PowerOff: time.Hour}})
	s := rack.Servers()[0]
	simtest.Reset(t, s, "On")
	if s.Power() != model.PowerPoweringOn {
		t.Errorf("power %s, want PoweringOn", s.Power())
	}
	a := simtest.Dial(t, s.BMC()).Do("POST", s.URI()+"/Actions/ComputerSystem.Reset", `{"ResetType":"ForceRestart"}`)
	if a.Status != 409 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a reset during another: %d, Retry-After %q", a.Status, a.Header.Get("Retry-After"))
	}
	simtest.Reset(t, s, "ForceOff")
	if s.Power() != model.PowerOff {
		t.Errorf("power %s, want Off", s.Power())
	}
	s.SetRunning("debian")
	simtest.Reset(t, s, "GracefulShutdown")
	if s.Power() != model.PowerPoweringOff {
		t.Errorf("power %s, want PoweringOff", s.Power())
	}
}

func TestHTTPBootBeginsWhereTheOverrideSays(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: "http://127.0.0.1:1"})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
	a := simtest.Dial(t, s.BMC()).Do("PATCH", s.URI(), `{"Boot":{"BootSourceOverrideEnabled":"Once",`+
		`"BootSourceOverrideTarget":"UefiHttp","HttpBootUri":"`+svc.URL+"/ipxe/"+s.UUID()+`"}}`)
	if a.Status != 200 {
		t.Fatalf("override: %d %v", a.Status, a.MessageIDs())
	}
	simtest.Reset(t, s, "On")
	booted(t, s, 1, sim.BootRecord{From: sim.BootFromNetwork, Stages: fetchedAll, Outcome: sim.OutcomeInstalled})
}

func TestAScriptMayChain(t *testing.T) {
	svc := newBootService(t)
	rack := start(t, sim.Options{BootURL: svc.URL})
	s := rack.Servers()[0]
	svc.offer(s.UUID(), svc.imageIgnition(s.UUID()))
	own := strings.Replace(`#!ipxe
set ipxe-svc URL
set base-url ${ipxe-svc}/ipxe
isset ${uuid} || goto mac
iseq ${uuid} 00000000-0000-0000-0000-000000000000 && goto mac ||
chain --replace --autofree ${base-url}/again
exit
:mac
chain --replace --autofree ${base-url}/${net0/mac}
`, "URL", svc.URL, 1)
	svc.script = func(id string) string {
		if id == "again" {
			return "#!ipxe\nkernel /image?layer=kernel ignition.config.url=" + svc.URL + "/ignition/" + s.UUID() + "\nboot\n"
		}
		return own
	}
	bootOnce(t, s)
	booted(t, s, 1, sim.BootRecord{
		From: sim.BootFromNetwork, Outcome: sim.OutcomeInstalled,
		Stages: []model.BootStage{model.StageScript, model.StageScript, model.StageKernel, model.StageIgnition},
	})
}

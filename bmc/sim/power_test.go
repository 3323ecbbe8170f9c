package sim

import (
	"slices"
	"testing"

	"ingot/model"
)

func TestWhatAResetDoes(t *testing.T) {
	tests := []struct {
		name  string
		reset string
		power model.Power
		runs  system
		want  verdict
	}{
		{"On when off", "On", model.PowerOff, systemNone, verdict{do: TransitionOn}},
		{"On when on", "On", model.PowerOn, systemOS, verdict{}},
		{"ForceOff when off", "ForceOff", model.PowerOff, systemNone, verdict{}},
		{"ForceOff when on", "ForceOff", model.PowerOn, systemOS, verdict{do: TransitionOff}},
		{"ForceOff on the way up", "ForceOff", model.PowerPoweringOn, systemNone, verdict{do: TransitionOff}},
		{"On on the way up", "On", model.PowerPoweringOn, systemNone, verdict{refused: refusedBusy}},
		{"On on the way down", "On", model.PowerPoweringOff, systemOS, verdict{refused: refusedBusy}},
		{"GracefulShutdown is heard by a system", "GracefulShutdown", model.PowerOn, systemOS, verdict{do: TransitionShutdown}},
		{"GracefulShutdown is heard by the probe", "GracefulShutdown", model.PowerOn, systemProbe, verdict{do: TransitionShutdown}},
		{"GracefulShutdown is heard by nobody", "GracefulShutdown", model.PowerOn, systemNone, verdict{}},
		{"GracefulRestart", "GracefulRestart", model.PowerOn, systemOS, verdict{do: TransitionReboot}},
		{"GracefulRestart is heard by the firmware", "GracefulRestart", model.PowerOn, systemNone, verdict{do: TransitionReboot}},
		{"GracefulRestart when off", "GracefulRestart", model.PowerOff, systemNone, verdict{refused: refusedState}},
		{"ForceRestart", "ForceRestart", model.PowerOn, systemNone, verdict{do: TransitionRestart}},
		{"ForceRestart when off", "ForceRestart", model.PowerOff, systemNone, verdict{refused: refusedState}},
		{"PowerCycle", "PowerCycle", model.PowerOn, systemOS, verdict{do: TransitionCycle}},
		{"PowerCycle when off", "PowerCycle", model.PowerOff, systemNone, verdict{do: TransitionOn}},
		{"the button when off", "PushPowerButton", model.PowerOff, systemNone, verdict{do: TransitionOn}},
		{"the button when on", "PushPowerButton", model.PowerOn, systemOS, verdict{do: TransitionShutdown}},
		{"Nmi", "Nmi", model.PowerOn, systemOS, verdict{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := judge(tt.reset, tt.power, tt.runs, false); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := judge("On", model.PowerOn, systemOS, true); got.refused != refusedState {
		t.Errorf("a vendor that refuses: %+v", got)
	}
}

func TestWhatTheFirmwareBootsFrom(t *testing.T) {
	once := func(target string) bootOverride {
		return bootOverride{Enabled: "Once", Target: target, Mode: "UEFI"}
	}
	network := []BootSource{BootFromNetwork, BootFromDisk}
	disk := []BootSource{BootFromDisk}
	tests := []struct {
		name         string
		override     bootOverride
		ignored      bool
		networkFirst bool
		want         []BootSource
	}{
		{"no override", noOverride, false, false, disk},
		{"PXE once", once("Pxe"), false, false, network},
		{"HTTP once", once("UefiHttp"), false, false, network},
		{"PXE always", bootOverride{Enabled: "Continuous", Target: "Pxe"}, false, false, network},
		{"a target without being enabled", bootOverride{Enabled: "Disabled", Target: "Pxe"}, false, false, disk},
		{"PXE once, ignored", once("Pxe"), true, false, disk},
		{"network first", noOverride, false, true, network},
		{"network first, disk once", once("Hdd"), false, true, disk},
		{"network first, disk once, ignored", once("Hdd"), true, true, network},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := choice(tt.override, !tt.ignored, tt.networkFirst); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMemberIDsSortAsTheirMembersDo(t *testing.T) {
	for format, want := range map[string][]string{"%d": {"01", "12"}, "System.Embedded.%d": {"System.Embedded.01", "System.Embedded.12"}, "Self": {"Self", "Self12"}} {
		var ids []string
		for i := range 12 {
			ids = append(ids, memberID(format, i, 12))
		}
		if ids[0] != want[0] || ids[11] != want[1] || !slices.IsSorted(ids) {
			t.Errorf("%s: %v", format, ids)
		}
	}
}

func TestNoTwoPortsShareAMACAddress(t *testing.T) {
	seen := map[string]bool{}
	for _, seed := range []int64{0, 7, -1} {
		clear(seen)
		r := &Rack{opts: Options{Seed: seed}, kind: personalities["generic"]}
		for number := 1; number <= maxBMCs; number++ {
			for _, system := range []int{0, 1, maxSystemsPerBMC - 1} {
				for _, port := range []int{0, 1, bmcPort} {
					mac := r.mac(number, system, port)
					if seen[mac] {
						t.Fatalf("seed %d: %s is there twice", seed, mac)
					}
					seen[mac] = true
				}
			}
		}
	}
}

func TestTheClockHasNoPartInAnETag(t *testing.T) {
	v := view{bmc: &BMC{rack: &Rack{kind: personalities["hpe"]}}}
	early, first := v.encode(object{"Id": "1", "DateTime": "2026-01-01T00:00:00Z"})
	late, second := v.encode(object{"Id": "1", "DateTime": "2026-01-02T00:00:00Z"})
	_, other := v.encode(object{"Id": "2", "DateTime": "2026-01-01T00:00:00Z"})
	if first != second || first == other || string(early) == string(late) {
		t.Errorf("ETags %s, %s and %s of\n%s\n%s", first, second, other, early, late)
	}
}

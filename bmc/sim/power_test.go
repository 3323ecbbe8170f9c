package sim

import (
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
		{name: "On when off", reset: "On", power: model.PowerOff, runs: systemNone, want: verdict{do: TransitionOn}},
		{name: "On when on", reset: "On", power: model.PowerOn, runs: systemOS, want: verdict{}},
		{name: "ForceOff when off", reset: "ForceOff", power: model.PowerOff, runs: systemNone, want: verdict{}},
		{name: "ForceOff when on", reset: "ForceOff", power: model.PowerOn, runs: systemOS, want: verdict{do: TransitionOff}},
		{
			name: "ForceOff on the way up", reset: "ForceOff", power: model.PowerPoweringOn, runs: systemNone,
			want: verdict{do: TransitionOff},
		},
		{name: "On on the way up", reset: "On", power: model.PowerPoweringOn, runs: systemNone, want: verdict{refused: refusedBusy}},
		{name: "On on the way down", reset: "On", power: model.PowerPoweringOff, runs: systemOS, want: verdict{refused: refusedBusy}},
		{
			name: "GracefulShutdown is heard by a system", reset: "GracefulShutdown", power: model.PowerOn, runs: systemOS,
			want: verdict{do: TransitionShutdown},
		},
		{
			name: "GracefulShutdown is heard by the probe", reset: "GracefulShutdown", power: model.PowerOn, runs: systemProbe,
			want: verdict{do: TransitionShutdown},
		},
		{name: "GracefulShutdown is heard by nobody", reset: "GracefulShutdown", power: model.PowerOn, runs: systemNone, want: verdict{}},
		{name: "GracefulRestart", reset: "GracefulRestart", power: model.PowerOn, runs: systemOS, want: verdict{do: TransitionReboot}},
		{
			name: "GracefulRestart is heard by the firmware", reset: "GracefulRestart", power: model.PowerOn, runs: systemNone,
			want: verdict{do: TransitionReboot},
		},
		{
			name: "GracefulRestart when off", reset: "GracefulRestart", power: model.PowerOff, runs: systemNone,
			want: verdict{refused: refusedState},
		},
		{name: "ForceRestart", reset: "ForceRestart", power: model.PowerOn, runs: systemNone, want: verdict{do: TransitionRestart}},
		{
			name: "ForceRestart when off", reset: "ForceRestart", power: model.PowerOff, runs: systemNone,
			want: verdict{refused: refusedState},
		},
		{name: "PowerCycle", reset: "PowerCycle", power: model.PowerOn, runs: systemOS, want: verdict{do: TransitionCycle}},
		{name: "PowerCycle when off", reset: "PowerCycle", power: model.PowerOff, runs: systemNone, want: verdict{do: TransitionOn}},
		{name: "the button when off", reset: "PushPowerButton", power: model.PowerOff, runs: systemNone, want: verdict{do: TransitionOn}},
		{name: "the button when on", reset: "PushPowerButton", power: model.PowerOn, runs: systemOS, want: verdict{do: TransitionShutdown}},
		{name: "Nmi", reset: "Nmi", power: model.PowerOn, runs: systemOS, want: verdict{}},
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

func TestNoTwoPortsShareAMACAddress(t *testing.T) {
	seen := map[string]bool{}
	for _, seed := range []int64{0, 7, -1} {
		clear(seen)
		r := &Rack{opts: Options{Seed: seed}, kind: personalities["generic"]}
		for number := 1; number <= MaxBMCs; number++ {
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

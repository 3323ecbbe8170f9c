package model

import (
	"testing"
	"time"
)

func TestWhatIsToldOfAnInstall(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	told := func(boot int, stages ...DiskInstallStage) *DiskInstall {
		var d *DiskInstall
		for i, stage := range stages {
			next := d.Told(&ProbeInstall{Stage: stage}, boot, 100, now.Add(time.Duration(i)*time.Second))
			d = &next
		}
		return d
	}
	for name, tc := range map[string]struct {
		is       *DiskInstall
		verified bool
		begun    int
	}{
		"what is being written is not verified":                               {is: told(0, DiskProbeBooted, DiskChosen, DiskWriting)},
		"what was verified is":                                                {is: told(0, DiskProbeBooted, DiskWriting, DiskVerified), verified: true},
		"a stage behind it counts as verified where the store was lost since": {is: told(0, DiskRebooting), verified: true},
		"a probe that says twice that it runs was started once":               {is: told(0, DiskProbeBooted, DiskProbeBooted)},
		"a probe that runs again after it wrote was started again, though its firmware asked for no script": {
			is: told(0, DiskProbeBooted, DiskWriting, DiskProbeBooted, DiskWriting, DiskProbeBooted), begun: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.is.Verified() != tc.verified || tc.is.Begun != tc.begun {
				t.Errorf("verified %t, begun %d times before: want %t and %d", tc.is.Verified(), tc.is.Begun, tc.verified, tc.begun)
			}
		})
	}
}

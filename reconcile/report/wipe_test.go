package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/progress"
)

func TestTheConditionWipedSaysWhatBecameOfEachDisk(t *testing.T) {
	failed := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	lacks := progress.Missing([]model.MissingDisk{fleettest.SDBMissing})
	tests := map[string]struct {
		wiped   []model.DiskWipe
		missing []model.MissingDisk
		want    string
	}{
		"no wipe yet": {want: ""},
		"all done":    {wiped: fleettest.WipedDisks("S1", "S2"), want: "True WipeDone: 2 disks done"},
		"one failed":  {wiped: failed, want: "False WipeFailed: sda (serial S1): I/O error"},
		"one is missing": {
			wiped:   fleettest.WipedDisks("S1"),
			missing: []model.MissingDisk{fleettest.SDBMissing},
			want:    "False DiskMissing: " + lacks,
		},
		"none was seen": {missing: []model.MissingDisk{fleettest.SDBMissing}, want: "False DiskMissing: " + lacks},
		"one failed, one missing": {
			wiped:   failed,
			missing: []model.MissingDisk{fleettest.SDBMissing},
			want:    "False WipeFailed: sda (serial S1): I/O error; " + lacks,
		},
		"one was replaced": {
			wiped:   fleettest.WipedDisks("S1"),
			missing: []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true, ReplacedBy: "S9"}},
			want:    "True WipeDone: 1 disk done; replaced under a ServerMaintenance and not wiped: sdb (serial S2)",
		},
		"one is accepted as permanently removed": {
			wiped: fleettest.WipedDisks("S1"), missing: []model.MissingDisk{fleettest.SDBGone},
			want: "True WipeDone: 1 disk done; accepted without a wipe: sdb (serial S2, model M)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serverView{Server: &plan.Server{Record: &model.ServerRecord{Disks: model.RecordDisks{Wiped: tc.wiped, Missing: tc.missing}}}}
			got := ""
			if c, wiped := s.wipedCondition(); wiped {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestADiskThatDoesNotSayHowFarItsWipeIsShowsNoPercent(t *testing.T) {
	got, err := json.Marshal(cleanupOf(&model.WipeProgress{Mode: model.CleanupSecure, Disks: []model.DiskProgress{
		{Name: "sda", Percent: 0}, {Name: "nvme0n1", Percent: -1},
	}}))
	want := `{"mode":"secure","disks":[{"name":"sda","percent":0},{"name":"nvme0n1"}]}`
	if err != nil || string(got) != want {
		t.Errorf("error %v\ngot  %s\nwant %s", err, got, want)
	}
}

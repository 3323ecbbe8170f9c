package plan

import (
	"testing"

	"ingot/model"
)

func TestDisksThatAreHeldAgainstAClaim(t *testing.T) {
	reported := []model.ProbeDisk{{Name: "sda", Serial: "S1", WWID: "eui.1", SizeBytes: 4e9}, {Name: "sdb", Serial: "S2", WWID: "eui.2", SizeBytes: 8e9}}
	wiped := func(serials ...string) (all []model.DiskWipe) {
		for _, d := range reported {
			for _, serial := range serials {
				if d.Serial == serial {
					all = append(all, model.DiskWipe{Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes})
				}
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		rec  model.ServerRecord
		held bool
	}{
		"as its discovery reported them":                 {held: true},
		"a wipe has seen the same":                       {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: wiped("S1", "S2")}}, held: true},
		"a wipe has seen fewer":                          {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: wiped("S1")}}},
		"a wipe has seen another":                        {rec: model.ServerRecord{Disks: model.RecordDisks{Wiped: append(wiped("S1"), model.DiskWipe{Serial: "S3", SizeBytes: 8e9})}}},
		"a drive was replaced under a ServerMaintenance": {rec: model.ServerRecord{Disks: model.RecordDisks{Known: []model.Disk{{Serial: "S1", ReplacedBy: "S9"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Observed: model.NewObserved()}
			in.Observed.Probes["s1"] = &model.ProbeReport{Data: model.ProbeData{Storage: reported}}
			s := &server{name: "s1", rec: &tc.rec, fleet: &fleet{in: &in}}
			if got := len(s.presentDisks()); got != len(reported) && tc.held || got != 0 && !tc.held {
				t.Errorf("%d disks are held against a claim, want all: %t", got, tc.held)
			}
		})
	}
}

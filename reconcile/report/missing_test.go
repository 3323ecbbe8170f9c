package report

import (
	"fmt"
	"ingot/model"
	"ingot/reconcile/plan"
	"testing"
)

// wipedDisks are disks with these serial numbers in the report of a wipe.
func wipedDisks(serials ...string) []model.DiskWipe {
	var list []model.DiskWipe
	for i, s := range serials {
		list = append(list, model.DiskWipe{Name: fmt.Sprint("disk", i), Serial: s, SizeBytes: 1 << 40, Result: model.WipeDone})
	}
	return list
}

func TestTheConditionWipedSaysWhatBecameOfEachDisk(t *testing.T) {
	failed := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	lacks := plan.MissingDisksText([]model.MissingDisk{sdbMissing})
	tests := map[string]struct {
		wiped   []model.DiskWipe
		missing []model.MissingDisk
		want    string
	}{
		"no wipe yet":             {want: ""},
		"all done":                {wipedDisks("S1", "S2"), nil, "True WipeDone: 2 disks done"},
		"one failed":              {failed, nil, "False WipeFailed: sda (serial S1): I/O error"},
		"one is missing":          {wipedDisks("S1"), []model.MissingDisk{sdbMissing}, "False DiskMissing: " + lacks},
		"none was seen":           {nil, []model.MissingDisk{sdbMissing}, "False DiskMissing: " + lacks},
		"one failed, one missing": {failed, []model.MissingDisk{sdbMissing}, "False WipeFailed: sda (serial S1): I/O error; " + lacks},
		"one was replaced":        {wipedDisks("S1"), []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true, ReplacedBy: "S9"}}, "True WipeDone: 1 disk done; replaced under a ServerMaintenance and not wiped: sdb (serial S2)"},
		"one is gone for good":    {wipedDisks("S1"), []model.MissingDisk{sdbGone}, "True WipeDone: 1 disk done; accepted without a wipe: sdb (serial S2, model M)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serverView{Server: &plan.Server{Record: &model.ServerRecord{Wiped: tc.wiped, Missing: tc.missing}}}
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

var (
	sdbMissing = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M"}
	sdbGone    = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M", Gone: true}
)

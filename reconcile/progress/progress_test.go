package progress_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/progress"
)

func TestEveryStageSaysWhereToLook(t *testing.T) {
	b := model.BootTrace{Ticket: &model.Ticket{ID: "t"}, Progress: &model.Progress{
		Ticket: "t", DHCPAt: time.Unix(1, 0), TFTPAt: time.Unix(1, 0), HTTPBootAt: time.Unix(1, 0), ScriptAt: time.Unix(1, 0),
		KernelAt: time.Unix(1, 0), InitrdAt: time.Unix(1, 0), IgnitionAt: time.Unix(1, 0),
	}}
	b.Ticket.ArmedAt = time.Unix(1, 0)
	for _, s := range b.Steps() {
		if progress.Hint(s.Stage) == "" || b.Upcoming(s.Stage) == "" {
			t.Errorf("after %s no hint says where to look or what comes", s.Stage)
		}
	}
}

func TestHowFarAWipeIs(t *testing.T) {
	disk := func(name string, percent int, method, result string) model.DiskProgress {
		return model.DiskProgress{Name: name, Percent: percent, Method: method, Result: result}
	}
	tests := map[string]struct {
		disks []model.DiskProgress
		want  string
	}{
		"one disk":            {disks: []model.DiskProgress{disk("sda", 47, "overwrite", "")}, want: "0 of 1 disk done, sda at 40 % (overwrite)"},
		"nothing is done yet": {disks: []model.DiskProgress{disk("sda", 9, "", "")}, want: "0 of 1 disk done, sda at 0 %"},
		"a disk that does not say": {
			disks: []model.DiskProgress{disk("nvme0n1", -1, "nvme-sanitize", "")},
			want:  "0 of 1 disk done, nvme0n1 (nvme-sanitize): the disk does not say how far it is",
		},
		"none of two says": {
			disks: []model.DiskProgress{disk("sda", -1, "", ""), disk("sdb", -1, "", "")},
			want:  "0 of 2 disks done, sda: the disk does not say how far it is",
		},
		"none of those left says": {
			disks: []model.DiskProgress{disk("sda", 100, "", model.WipeDone), disk("sdb", -1, "", "")},
			want:  "1 of 2 disks done, sdb: the disk does not say how far it is",
		},
		"the furthest behind is named": {
			disks: []model.DiskProgress{disk("sda", 90, "", ""), disk("sdb", 20, "", ""), disk("sdc", 100, "", model.WipeDone)},
			want:  "1 of 3 disks done, sdb at 20 %",
		},
		"one that says goes before": {disks: []model.DiskProgress{disk("sda", -1, "", ""), disk("sdb", 90, "", "")}, want: "0 of 2 disks done, sdb at 90 %"},
		"all are done":              {disks: []model.DiskProgress{disk("sda", 100, "", model.WipeDone), disk("sdb", 3, "", model.WipeFailed)}, want: "2 of 2 disks done"},
		"more than a probe may say": {disks: []model.DiskProgress{disk("sda", 1000, "", "")}, want: "0 of 1 disk done, sda at 100 %"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progress.Wipe(&model.WipeProgress{Disks: tc.disks}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

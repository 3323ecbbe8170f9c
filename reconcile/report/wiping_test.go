package report

import (
	"encoding/json"
	"ingot/model"
	"testing"
)

func TestADiskThatDoesNotSayHowFarItsWipeIsShowsNoPercent(t *testing.T) {
	got, err := json.Marshal(cleanupOf(&model.WipeProgress{Mode: model.CleanupSecure, Disks: []model.DiskProgress{
		{Name: "sda", Percent: 0}, {Name: "nvme0n1", Percent: -1},
	}}))
	want := `{"mode":"secure","disks":[{"name":"sda","percent":0},{"name":"nvme0n1"}]}`
	if err != nil || string(got) != want {
		t.Errorf("error %v\ngot  %s\nwant %s", err, got, want)
	}
}

package adapter

import (
	"strings"
	"testing"

	"ingot/bootsvc/diskimage"
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

func TestWhichServersAnImageFits(t *testing.T) {
	image := model.DiskImage{Ref: "os", Bytes: 10 << 30, Starts: []model.StartMethod{model.StartBIOS, model.StartUEFIAMD64}}
	disks := []model.ProbeDisk{
		{Name: "sda", Serial: "S1", SizeBytes: 20 << 30, LogicalBlockSize: 512}, {Name: "sdb", Serial: "S2", SizeBytes: 5 << 30, LogicalBlockSize: 512},
	}
	for title, tc := range map[string]struct {
		starts []model.StartMethod
		boot   proposal.Boot
		reason model.Reason // "" = it fits
	}{
		"one whose firmware is not known":        {starts: image.Starts[1:], boot: proposal.Boot{Architecture: "amd64", ForDisk: proposal.ForDisk{Disks: disks}}},
		"UEFI, by a loader":                      {starts: image.Starts[1:], boot: proposal.Boot{Architecture: "amd64", Firmware: &model.BootFirmware{UEFI: true}}},
		"N12: not BIOS, by a loader of UEFI":     {starts: image.Starts[1:], boot: proposal.Boot{Architecture: "amd64", Firmware: &model.BootFirmware{}}, reason: model.ReasonImageCannotBoot},
		"N12: not UEFI, by boot code of BIOS":    {starts: image.Starts[:1], boot: proposal.Boot{Architecture: "amd64", Firmware: &model.BootFirmware{UEFI: true}}, reason: model.ReasonImageCannotBoot},
		"N12: not ARM, by a loader of x86":       {starts: image.Starts, boot: proposal.Boot{Architecture: "arm64"}, reason: model.ReasonImageCannotBoot},
		"one whose disks are not known":          {starts: image.Starts, boot: proposal.Boot{Architecture: "amd64", ForDisk: proposal.ForDisk{Hints: []string{"serial=S2"}}}},
		"N14: not one whose named disk is small": {starts: image.Starts, boot: proposal.Boot{Architecture: "amd64", ForDisk: proposal.ForDisk{Disks: disks, Hints: []string{"serial=S2"}}}, reason: model.ReasonDiskTooSmall},
		"N19: not one without the named disk":    {starts: image.Starts, boot: proposal.Boot{Architecture: "amd64", ForDisk: proposal.ForDisk{Disks: disks, Hints: []string{"serial=S3"}}}, reason: model.ReasonRootDeviceMissing},
	} {
		image.Starts = tc.starts
		err := fitsServer(&image, &tc.boot)
		var reason model.Reason
		if b, ok := err.(*because); ok { //nolint:errorlint // it is what reconcile is handed
			reason = b.Reason()
		}
		if reason != tc.reason || (err != nil) != (tc.reason != "") {
			t.Errorf("%s: %v", title, err)
		}
		image.Starts = []model.StartMethod{model.StartBIOS, model.StartUEFIAMD64}
	}
}

func TestAnImageThatIsPreparedIsNoFailure(t *testing.T) {
	err := bootReasoned(&diskimage.Preparing{Stage: diskimage.StageFetch, Done: 3, Total: 10})
	p, ok := err.(*stillPreparing) //nolint:errorlint // it is what reconcile is handed
	if !ok || p.Reason() != model.ReasonImagePreparing || !strings.Contains(p.Error(), "fetched") {
		t.Fatalf("it is %v", err)
	}
	if stage, done, total := p.Preparing(); stage != "fetch" || done != 3 || total != 10 {
		t.Errorf("it is at %s, %d of %d", stage, done, total)
	}
}

func TestWhichImagesReadIgnitionThemselves(t *testing.T) {
	for title, tc := range map[string]struct {
		partitions []diskimage.Partition
		want       model.SeedKind
	}{
		"Fedora CoreOS": {[]diskimage.Partition{{Name: "EFI-SYSTEM", Label: "EFI-SYSTEM"}, {Name: "boot", Label: "boot"}, {Name: "root", Label: "root"}}, model.SeedFCOS},
		"Flatcar":       {[]diskimage.Partition{{Name: "OEM", Label: "OEM"}}, model.SeedFlatcar},
		"none":          {[]diskimage.Partition{{Label: "boot"}, {Label: "root"}}, ""},
	} {
		if got := ignitionSeed(tc.partitions); got != tc.want {
			t.Errorf("%s: %q", title, got)
		}
	}
}

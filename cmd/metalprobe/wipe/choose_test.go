package wipe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

func TestChoose(t *testing.T) {
	disk := func(change func(*inventory.Disk)) inventory.Disk {
		d := inventory.Disk{
			ProbeDisk: model.ProbeDisk{Path: "/dev/sda", Name: "sda", Serial: "S1", SizeBytes: 1 << 40},
			Device:    "8:0",
			Above:     []inventory.Node{{Name: "dm-0", Device: "253:0", Mapping: "vg-root"}, {Name: "sda1", Device: "8:1"}},
		}
		if change != nil {
			change(&d)
		}
		return d
	}
	const (
		skipped = model.WipeSkipped
		failed  = model.WipeFailed
	)
	tests := map[string]struct {
		disk inventory.Disk
		use  map[string]string
		mode string
		want string

		reason, why string
	}{
		"a disk that nothing uses is wiped":    {disk: disk(nil)},
		"secure wipes the same disks as quick": {disk: disk(nil), mode: model.CleanupSecure},
		"none wipes nothing": {
			disk: disk(nil), mode: model.CleanupNone, want: skipped, reason: model.SkipMode,
			why: "cleanup mode none leaves disks as they are",
		},
		"a drive without a medium has nothing on it": {
			disk: disk(func(d *inventory.Disk) { d.SizeBytes, d.Removable = 0, true }), want: skipped,
			reason: model.SkipNoMedium, why: "there is no medium in the drive",
		},
		"a disk whose size Linux does not see may be full of data": {
			disk: disk(func(d *inventory.Disk) { d.SizeBytes = 0 }), want: failed,
			why: "the disk shows no size, so that nothing on it can be cleared: it is broken, busy with itself, " +
				"or formatted in a way that Linux does not take; format it anew or replace it",
		},
		"a removable medium may hold what a tenant wrote": {disk: disk(func(d *inventory.Disk) { d.Removable = true })},
		"a medium that the BMC lends is not the machine's": {
			disk: disk(func(d *inventory.Disk) { d.Vendor, d.Model = "AMI", "Virtual Floppy0" }),
			want: skipped, reason: model.SkipVirtualMedia, why: "the BMC lends this medium to the machine",
		},
		"a disk on a storage network may have other users": {
			disk: disk(func(d *inventory.Disk) { d.Remote = true }),
			want: skipped, reason: model.SkipRemote, why: "the disk is on a storage network, not in this machine",
		},
		"a disk that cannot be written still holds its data": {
			disk: disk(func(d *inventory.Disk) { d.ReadOnly = true }),
			want: failed, why: "the disk refuses writing: replace it, or lift its write protection",
		},
		"the disk of the running system": {
			disk: disk(nil), use: map[string]string{"8:0": "mounted on /"},
			want: failed, why: "sda is mounted on /: boot the cleanup image from the network, or unmount it",
		},
		"a disk with a mounted partition": {
			disk: disk(nil), use: map[string]string{"8:1": "mounted on /mnt"},
			want: failed, why: "sda1 is mounted on /mnt: boot the cleanup image from the network, or unmount it",
		},
		"a disk below a mapping that is mounted": {
			disk: disk(nil), use: map[string]string{"253:0": "mounted on /"},
			want: failed, why: "dm-0 is mounted on /: boot the cleanup image from the network, or unmount it",
		},
		"what is mounted elsewhere does not count": {
			disk: disk(nil), use: map[string]string{"8:17": "mounted on /", "0:21": "mounted on /run"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mode := test.mode
			if mode == "" {
				mode = model.CleanupQuick
			}
			want := []Choice{{Disk: test.disk, Result: test.want, Reason: test.reason, Why: test.why}}
			if diff := cmp.Diff(want, Choose([]inventory.Disk{test.disk}, test.use, mode)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

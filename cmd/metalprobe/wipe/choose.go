package wipe

import (
	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

// Choice is what becomes of one disk.
type Choice struct {
	Disk inventory.Disk
	// Result is empty for a disk that is to be wiped, else model.WipeSkipped for
	// one that needs no wipe or model.WipeFailed for one that must not have it.
	Result string
	// Why is the reason for a Result.
	Why string
}

// Choose decides which disks a wipe in the given mode clears. Use is what block
// devices are used for, as of inventory's Host.Use.
func Choose(disks []inventory.Disk, use map[string]string, mode string) []Choice {
	choices := make([]Choice, 0, len(disks))
	for _, d := range disks {
		result, why := decide(d, d.Used(use), mode)
		choices = append(choices, Choice{Disk: d, Result: result, Why: why})
	}
	return choices
}

func decide(d inventory.Disk, used, mode string) (result, why string) {
	switch {
	case mode == model.CleanupNone:
		return model.WipeSkipped, "cleanup mode none leaves disks as they are"
	case d.Removable && d.SizeBytes == 0:
		return model.WipeSkipped, "there is no medium in the drive"
	case d.Removable:
		return model.WipeSkipped, "the medium is removable"
	case d.Remote:
		return model.WipeSkipped, "the disk is on a storage network, not in this machine"
	case d.SizeBytes == 0:
		// Linux gives it no size when the disk is not ready, and when it cannot use how
		// the disk is formatted: with metadata, or with blocks of 520 bytes.
		return model.WipeFailed, "the disk shows no size, so that nothing on it can be cleared: it is broken, busy with itself, or formatted in a way that Linux does not take; format it anew or replace it"
	case used != "":
		return model.WipeFailed, used + ": boot the cleanup image from the network, or unmount it"
	case d.ReadOnly:
		return model.WipeFailed, "the disk refuses writing: replace it, or lift its write protection"
	}
	return "", ""
}

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
	// Reason says in one word why a disk is skipped; Why says in a sentence why it has
	// the Result.
	Reason, Why string
}

// Choose decides which disks a wipe in the given mode clears. Use is what block
// devices are used for, as of inventory's Host.Use.
func Choose(disks []inventory.Disk, use map[string]string, mode string) []Choice {
	choices := make([]Choice, 0, len(disks))
	for _, d := range disks {
		choices = append(choices, decide(d, d.Used(use), mode))
	}
	return choices
}

func decide(d inventory.Disk, used, mode string) Choice {
	if reason, why := skip(d, mode); reason != "" {
		return Choice{Disk: d, Result: model.WipeSkipped, Reason: reason, Why: why}
	}
	if why := refuse(d, used); why != "" {
		return Choice{Disk: d, Result: model.WipeFailed, Why: why}
	}
	return Choice{Disk: d}
}

// skip says why a disk needs no wipe, "" if it does. Removable media need one, because a
// tenant may have written to them.
func skip(d inventory.Disk, mode string) (reason, why string) {
	switch {
	case mode == model.CleanupNone:
		return model.SkipMode, "cleanup mode none leaves disks as they are"
	case d.Removable && d.SizeBytes == 0:
		return model.SkipNoMedium, "there is no medium in the drive"
	case model.VirtualMedia(d.Vendor, d.Model):
		return model.SkipVirtualMedia, "the BMC lends this medium to the machine"
	case d.Remote:
		return model.SkipRemote, "the disk is on a storage network, not in this machine"
	}
	return "", ""
}

// refuse says why a disk must not or cannot be wiped, "" if it can.
func refuse(d inventory.Disk, used string) string {
	switch {
	case d.SizeBytes == 0:
		// Linux shows no size while a disk is not ready, and when it cannot use the disk's
		// format, which may have metadata or blocks of 520 bytes.
		return "the disk shows no size, so that nothing on it can be cleared: it is broken, busy with itself, " +
			"or formatted in a way that Linux does not take; format it anew or replace it"
	case used != "":
		return used + ": boot the cleanup image from the network, or unmount it"
	case d.ReadOnly:
		return "the disk refuses writing: replace it, or lift its write protection"
	}
	return ""
}

package report

import (
	"ingot/model"
	"ingot/reconcile/progress"
)

// stageReasons are the stages as reasons of the condition BootProgress.
var stageReasons = map[model.BootStage]string{
	model.StageArmed: "Armed", model.StageDHCP: "DHCP", model.StageTFTP: "TFTP", model.StageHTTPBoot: "HTTPBoot",
	model.StageScript: "IPXEScript", model.StageKernel: "Kernel", model.StageInitrd: "Initrd", model.StageIgnition: "Ignition",
	model.StageReport: "Report", model.StageWipe: "Wipe", model.StageBootState: "BootState",
	model.StageDiskProbe: "DiskProbe", model.StageDiskChosen: "DiskChosen", model.StageDiskWriting: "DiskWriting",
	model.StageDiskVerified: "DiskVerified", model.StageDiskEntry: "DiskBootEntry", model.StageDiskReboot: "DiskReboot",
}

// progressText is a boot in a line: what was seen last, what before it, and what is
// awaited.
func progressText(b model.BootTrace, steps []model.BootStep) string {
	last := steps[len(steps)-1]
	text := "last seen: " + last.String()
	if n := len(steps); n > 1 {
		text += "; before it " + steps[n-2].String()
	}
	if w := b.Wiping(); w != nil && len(w.Disks) > 0 {
		text += "; its wipe: " + progress.Wipe(w)
	}
	if in := installing(b); in != nil && in.Stage == model.DiskWriting {
		text += "; " + progress.Install(b.Ticket.Disk, in)
	}
	if next := b.Upcoming(last.Stage); next != "" && b.Ticket.Open() {
		text += "; not seen yet: " + next
	}
	return text
}

// installing is how far the writing of the ticket's disk image is, nil if nothing was reported
// of it.
func installing(b model.BootTrace) *model.DiskInstall {
	if b.Ticket == nil || b.Ticket.Disk == nil || b.Progress == nil || b.Progress.Ticket != b.Ticket.ID {
		return nil
	}
	return b.Progress.Install
}

// Package progress describes the progress of boots, installs and wipes for people.
package progress

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
)

// stageHints say where to look when nothing comes after a stage.
var stageHints = map[model.BootStage]string{
	model.StageArmed: "nothing was seen of it: look at its boot order and its cabling, whether it is on the network where Ingot " +
		"answers, and whether DHCP answers there",
	model.StageDHCP: "it received the name of its boot file and did not fetch it: check whether a firewall is in the way, whether TFTP (UDP port " +
		"69) or the boot service is listening where it was sent, " +
		"and whether another DHCP server answers too",
	model.StageTFTP: "its boot loader did not ask for the iPXE script: look at its console, whether iPXE finds its network card " +
		"and whether the boot service can be reached over HTTP",
	model.StageHTTPBoot: "what it loaded by HTTP did not go on: look at its console, and whether Secure Boot refuses the image",
	model.StageScript:   "it did not fetch its kernel: check whether it can reach the boot service at boot.url, and look at its console",
	model.StageKernel:   "it did not fetch its initrd: look at its memory and at its console",
	model.StageInitrd: "what it booted did not ask for its Ignition: look at its console, and whether the image has a driver for its " +
		"network card",
	model.StageIgnition: "it took its Ignition and then nothing was heard: look at its console, whether it can reach registry.url, and " +
		"whether the image runs there",
	model.StageDiskProbe:    "its probe has not chosen a disk: check its console",
	model.StageDiskChosen:   "its probe has not begun to write: check its console, and whether it can reach boot.url",
	model.StageDiskWriting:  "its probe stopped writing: look at its console, at the disk, and whether it can reach boot.url",
	model.StageDiskVerified: "the image is on its disk and its probe did not go on: look at its console, and start it from its disk",
	model.StageDiskEntry:    "the image is on its disk and its probe did not power it off: look at its console, and start it from its disk",
	model.StageDiskReboot: "it was to start from its disk and nothing was heard: look at its console, whether the image has drivers for " +
		"this machine, and whether it can reach registry.url",
}

// Hint says where to look when a boot is seen no further than at a stage, "" when there is nothing
// to look for.
func Hint(last model.BootStage) string { return stageHints[last] }

// BootHint is the Hint of a boot's last stage.
func BootHint(b model.BootTrace) string { return Hint(last(b).Stage) }

func last(b model.BootTrace) model.BootStep {
	steps := b.Steps()
	if len(steps) == 0 {
		return model.BootStep{Stage: model.StageArmed}
	}
	return steps[len(steps)-1]
}

// Boot says how far a server came with its boot.
func Boot(b model.BootTrace) string {
	last := last(b)
	at := last.At.Format(time.RFC3339)
	switch last.Stage {
	case model.StageArmed:
		return "it has not asked for its boot script"
	case model.StageDHCP:
		return "last seen asking DHCP at " + at + ", it has not fetched its boot loader"
	case model.StageTFTP, model.StageHTTPBoot:
		return fmt.Sprintf("last seen fetching its boot loader by %s at %s", strings.TrimSuffix(string(last.Stage), " boot"), at)
	case model.StageReport, model.StageWipe, model.StageBootState:
		return fmt.Sprintf("its %s came at %s", last.Stage, at)
	case model.StageDiskProbe:
		return "its probe runs since " + at
	case model.StageDiskChosen, model.StageDiskWriting, model.StageDiskVerified, model.StageDiskEntry, model.StageDiskReboot:
		return fmt.Sprintf("last stage: %s at %s", last.Stage, at)
	case model.StageScript, model.StageKernel, model.StageInitrd, model.StageIgnition:
	}
	return fmt.Sprintf("last seen fetching %s at %s", last.Stage, at)
}

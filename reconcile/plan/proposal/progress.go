package proposal

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
	model.StageDHCP: "it was told its boot file and did not fetch it: check whether a firewall is in the way, whether TFTP (UDP port " +
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

// usual is how long a boot usually takes from a stage to the next.
var usual = map[model.BootStage]time.Duration{
	model.StageArmed: 5 * time.Minute, model.StageDHCP: time.Minute, model.StageTFTP: time.Minute, model.StageHTTPBoot: time.Minute,
	model.StageScript: time.Minute, model.StageKernel: time.Minute, model.StageInitrd: 2 * time.Minute, model.StageIgnition: 2 * time.Minute,
}

// UsualStage is how long the present stage of a boot usually takes, and when it has taken three times that. The
// self-test after a power-on takes as long as it took this server the last time.
func UsualStage(s *Server) (length time.Duration, slow time.Time) {
	stage, from := model.StageArmed, time.Time{}
	if steps := s.Trace().Steps(); len(steps) > 0 {
		stage, from = steps[len(steps)-1].Stage, steps[len(steps)-1].At
	}
	if a := s.Record.Power.Asked; a != nil {
		from = Later(from, a.At)
	}
	length = usual[stage]
	if stage == model.StageArmed {
		length = max(length, s.Record.Boot.BootsAfter)
	}
	return length, s.NotedAt(from).Add(3 * length)
}

// LastStage says how far the server came with its boot.
func LastStage(s *Server) string {
	stages := s.Trace().Steps()
	if len(stages) == 0 {
		return notAsked
	}
	last := stages[len(stages)-1]
	at := last.At.Format(time.RFC3339)
	switch last.Stage {
	case model.StageArmed:
		return notAsked
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

const notAsked = "it has not asked for its boot script"

// Hint says where to look when the server comes no further with its boot.
func Hint(s *Server) string {
	stages := s.Trace().Steps()
	if len(stages) == 0 {
		return stageHints[model.StageArmed]
	}
	return stageHints[stages[len(stages)-1].Stage]
}

// BootHint says where to look when a booting server is seen no further than at
// stage, "" when there is nothing to look for.
func BootHint(stage model.BootStage) string { return stageHints[stage] }

// LastServed is when a server was last given anything with its ticket, zero = never.
func LastServed(p *model.Progress) time.Time {
	if p == nil {
		return time.Time{}
	}
	last := p.DHCPAt
	for _, at := range []time.Time{p.TFTPAt, p.HTTPBootAt, p.ScriptAt, p.KernelAt, p.InitrdAt, p.IgnitionAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// AskedToBoot is when the server was last seen to ask for a network boot, zero = never.
// Others may have asked in its name: then it waits longer.
func AskedToBoot(p *model.Progress) (at time.Time) {
	if p == nil {
		return at
	}
	for _, u := range p.Uses {
		if (u.What == model.ThingScript || u.What == model.ThingBootFile) && u.Refusal != model.RefusedAddress && !u.Refusal.Untold() {
			at = Later(at, u.Last)
		}
	}
	return at
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earliest is the earlier of two times.
func Earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

package reconcile

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
)

// The stages of a boot that others than the boot service see.
const (
	stageArmed     model.BootStage = "armed"
	stageReport    model.BootStage = "report"
	stageWipe      model.BootStage = "wipe"
	stageBootState model.BootStage = "boot state"
)

// stageReasons are the stages as reasons of the condition BootProgress.
var stageReasons = map[model.BootStage]string{
	stageArmed: "Armed", model.StageDHCP: "DHCP", model.StageTFTP: "TFTP", model.StageHTTPBoot: "HTTPBoot",
	model.StageScript: "IPXEScript", model.StageKernel: "Kernel", model.StageInitrd: "Initrd", model.StageIgnition: "Ignition",
	stageReport: "Report", stageWipe: "Wipe", stageBootState: "BootState",
}

// bootStage is one stage of a boot that was seen.
type bootStage struct {
	Stage model.BootStage `json:"stage"`
	At    time.Time       `json:"at"`
}

// bootFacts is what is known of a server's boot with its newest ticket.
type bootFacts struct {
	ticket   *model.Ticket
	progress *model.Progress
	probe    *model.ProbeReport
	wipe     *model.WipeReport
	booted   *model.BootState
	// progressed is how far a wipe is that is going on.
	progressed *model.WipeProgress
}

// timeline lists the stages of the boot that were seen, in the order in which they
// come: each at most once, so it is bounded by their number.
func (b bootFacts) timeline() []bootStage {
	if b.ticket == nil {
		return nil
	}
	var out []bootStage
	add := func(stage model.BootStage, at time.Time) {
		if !at.IsZero() {
			out = append(out, bootStage{stage, at.UTC().Truncate(time.Second)})
		}
	}
	id := b.ticket.ID
	add(stageArmed, b.ticket.ArmedAt)
	var p model.Progress
	if b.progress != nil && b.progress.Ticket == id {
		p = *b.progress
	}
	if p.IgnitionAt.IsZero() && b.ticket.BootedBy != model.BootedKernel {
		p.IgnitionAt = b.ticket.IgnitionAt
	}
	if b.ticket.Config == model.ThingScript {
		p.IgnitionAt = time.Time{} // there is none: its script is the last that is served to it
	}
	add(model.StageDHCP, p.DHCPAt)
	add(model.StageTFTP, p.TFTPAt)
	add(model.StageHTTPBoot, p.HTTPBootAt)
	add(model.StageScript, p.ScriptAt)
	add(model.StageKernel, p.KernelAt)
	add(model.StageInitrd, p.InitrdAt)
	add(model.StageIgnition, p.IgnitionAt)
	if b.probe != nil && b.probe.Ticket == id {
		add(stageReport, b.probe.ReceivedAt)
	}
	if b.wipe != nil && b.wipe.Ticket == id {
		add(stageWipe, b.wipe.ReceivedAt)
	}
	if b.booted != nil && b.booted.Ticket == id {
		add(stageBootState, b.booted.ReceivedAt)
	}
	return out
}

// upcoming is what comes after a stage, "" when nothing does. What firmware fetches
// after DHCP depends on the firmware.
func (b bootFacts) upcoming(last model.BootStage) string {
	switch last {
	case stageArmed:
		return "DHCP or iPXE script"
	case model.StageDHCP:
		return "boot loader by TFTP or HTTP"
	case model.StageTFTP:
		return string(model.StageScript)
	case model.StageHTTPBoot:
		return "iPXE script or Ignition"
	case model.StageScript:
		if b.ticket.Config == model.ThingScript {
			return string(b.outcome())
		}
		return string(model.StageKernel)
	case model.StageKernel:
		return string(model.StageInitrd)
	case model.StageInitrd:
		return string(model.StageIgnition)
	case model.StageIgnition:
		return string(b.outcome())
	}
	return ""
}

// ended reports whether the stage was seen that ends the boot.
func (b bootFacts) ended() bool {
	stages := b.timeline()
	return len(stages) > 0 && stages[len(stages)-1].Stage == b.outcome()
}

// outcome is the stage that ends a boot for the ticket's purpose.
func (b bootFacts) outcome() model.BootStage {
	switch b.ticket.Purpose {
	case model.PurposeDiscovery:
		return stageReport
	case model.PurposeCleanup:
		return stageWipe
	case model.PurposeClaim:
	}
	return stageBootState
}

// progressText is the timeline in a line: what was seen last, what before it, and
// what is awaited.
func (b bootFacts) progressText(stages []bootStage) string {
	last := stages[len(stages)-1]
	text := "last seen: " + last.text()
	if n := len(stages); n > 1 {
		text += "; before it " + stages[n-2].text()
	}
	if w := b.wiping(); w != nil && len(w.Disks) > 0 {
		text += "; its wipe: " + wipeText(w)
	}
	if next := b.upcoming(last.Stage); next != "" && b.ticket.Open() {
		text += "; not seen yet: " + next
	}
	return text
}

func (s bootStage) text() string {
	return string(s.Stage) + " " + s.At.Format(time.TimeOnly) + "Z"
}

// stageHints say where to look when nothing comes after a stage.
var stageHints = map[model.BootStage]string{
	stageArmed: "nothing was seen of it: look at its boot order and its cabling, whether it is on the network where Ingot answers, and whether DHCP answers there",
	model.StageDHCP: "it was told its boot file and did not fetch it: look whether a firewall is in the way, whether TFTP (UDP port 69) or the boot service is listening where it was sent, " +
		"and whether another DHCP server answers too",
	model.StageTFTP:     "its boot loader did not ask for the iPXE script: look at its console, whether iPXE finds its network card and whether the boot service can be reached over HTTP",
	model.StageHTTPBoot: "what it loaded by HTTP did not go on: look at its console, and whether Secure Boot refuses the image",
	model.StageScript:   "it did not fetch its kernel: look whether it can reach the boot service at boot.url, and at its console",
	model.StageKernel:   "it did not fetch its initrd: look at its memory and at its console",
	model.StageInitrd:   "what it booted did not ask for its Ignition: look at its console, and whether the image has a driver for its network card",
	model.StageIgnition: "it took its Ignition and then nothing was heard: look at its console, whether it can reach registry.url, and whether the image runs there",
}

// bootFacts is what is known of the server's boot.
func (s *server) bootFacts() bootFacts {
	o := s.fleet.in.Observed
	return bootFacts{s.rec.Ticket, o.Progress[s.name], o.Probes[s.name], o.Wipes[s.name], o.BootStates[s.name], o.WipeProgress[s.name]}
}

// lastStage says how far the server came with its boot.
func (s *server) lastStage() string {
	stages := s.bootFacts().timeline()
	if len(stages) == 0 {
		return notAsked
	}
	last := stages[len(stages)-1]
	at := last.At.Format(time.RFC3339)
	switch last.Stage {
	case stageArmed:
		return notAsked
	case model.StageDHCP:
		return "last seen asking DHCP at " + at + ", it has not fetched its boot loader"
	case model.StageTFTP, model.StageHTTPBoot:
		return fmt.Sprintf("last seen fetching its boot loader by %s at %s", strings.TrimSuffix(string(last.Stage), " boot"), at)
	case stageReport, stageWipe, stageBootState:
		return fmt.Sprintf("its %s came at %s", last.Stage, at)
	case model.StageScript, model.StageKernel, model.StageInitrd, model.StageIgnition:
	}
	return fmt.Sprintf("last seen fetching %s at %s", last.Stage, at)
}

const notAsked = "it has not asked for its boot script"

// hint says where to look when the server comes no further with its boot.
func (s *server) hint() string {
	stages := s.bootFacts().timeline()
	if len(stages) == 0 {
		return stageHints[stageArmed]
	}
	return stageHints[stages[len(stages)-1].Stage]
}

// BootHint says where to look when a booting server is seen no further than at
// stage, "" when there is nothing to look for.
func BootHint(stage model.BootStage) string { return stageHints[stage] }

package model

import "time"

// The stages of a boot that others than the boot service see.
const (
	StageArmed     BootStage = "armed"      // it has a boot ticket, and has not asked yet
	StageReport    BootStage = "report"     // the probe reported
	StageWipe      BootStage = "wipe"       // the probe reported of its wipe
	StageBootState BootStage = "boot state" // what was installed said that it runs
)

// The stages of the writing of a disk image that its probe reports.
const (
	StageDiskProbe    BootStage = "disk probe"    // the probe runs that writes it
	StageDiskChosen   BootStage = "disk chosen"   // the probe has chosen the disk
	StageDiskWriting  BootStage = "disk writing"  // the probe writes it
	StageDiskVerified BootStage = "disk verified" // the image is on it, and was read back in samples
	StageDiskEntry    BootStage = "boot entry"    // the probe gives the firmware a boot entry for it
	StageDiskReboot   BootStage = "disk reboot"   // the probe is done, and the disk is booted next
)

// BootStep is one stage of a boot that was seen.
type BootStep struct {
	Stage BootStage `json:"stage"`
	At    time.Time `json:"at"`
}

// BootTrace is what is known of a server's boot with its newest ticket.
type BootTrace struct {
	Ticket       *Ticket
	Progress     *Progress
	Probe        *ProbeReport
	Wipe         *WipeReport
	Booted       *BootState
	WipeProgress *WipeProgress // how far a wipe is that is going on
}

// BootOf is what is known of a server's boot with the ticket of its record.
func (o *Observed) BootOf(rec *ServerRecord) BootTrace {
	return BootTrace{
		Ticket: rec.Boot.Ticket, Progress: o.Progress[rec.Name], Probe: o.Probes[rec.Name], Wipe: o.Wipes[rec.Name],
		Booted: o.BootStates[rec.Name], WipeProgress: o.WipeProgress[rec.Name],
	}
}

// ProgressOf is how far a server has come with the ticket of its record, nil if nowhere.
func (o *Observed) ProgressOf(rec *ServerRecord) *Progress {
	p := o.Progress[rec.Name]
	if p == nil || rec.Boot.Ticket == nil || p.Ticket != rec.Boot.Ticket.ID {
		return nil
	}
	return p
}

// Steps lists the stages of the boot that were seen, in the order in which they come:
// each at most once, so it is bounded by their number.
func (b BootTrace) Steps() []BootStep {
	if b.Ticket == nil {
		return nil
	}
	var out []BootStep
	add := func(stage BootStage, at time.Time) {
		if !at.IsZero() {
			out = append(out, BootStep{stage, at.UTC().Truncate(time.Second)})
		}
	}
	id := b.Ticket.ID
	add(StageArmed, b.Ticket.ArmedAt)
	p := b.served()
	add(StageDHCP, p.DHCPAt)
	add(StageTFTP, p.TFTPAt)
	add(StageHTTPBoot, p.HTTPBootAt)
	add(StageScript, p.ScriptAt)
	add(StageKernel, p.KernelAt)
	add(StageInitrd, p.InitrdAt)
	add(StageIgnition, p.IgnitionAt)
	if in := p.Install; in != nil {
		add(StageDiskProbe, in.BootedAt)
		add(StageDiskChosen, in.ChosenAt)
		add(StageDiskWriting, in.StartedAt)
		add(StageDiskVerified, in.VerifiedAt)
		add(StageDiskEntry, in.BootEntryAt)
		add(StageDiskReboot, in.RebootingAt)
	} else if b.Ticket.Disk != nil { // the store was lost, and with it the rest
		add(StageDiskVerified, b.Ticket.IgnitionAt)
	}
	if b.Probe != nil && b.Probe.Ticket == id {
		add(StageReport, b.Probe.ReceivedAt)
	}
	if b.Wipe != nil && b.Wipe.Ticket == id {
		add(StageWipe, b.Wipe.ReceivedAt)
	}
	if b.Booted != nil && b.Booted.Ticket == id {
		add(StageBootState, b.Booted.ReceivedAt)
	}
	return out
}

// served is what the boot service served with the ticket, as far as that is a stage of
// this boot.
func (b BootTrace) served() Progress {
	var p Progress
	if b.Progress != nil && b.Progress.Ticket == b.Ticket.ID {
		p = *b.Progress
	}
	if p.IgnitionAt.IsZero() && b.Ticket.BootedBy != BootedKernel && b.Ticket.Disk == nil {
		p.IgnitionAt = b.Ticket.IgnitionAt
	}
	if b.Ticket.Config == ThingScript && b.Ticket.Disk == nil {
		p.IgnitionAt = time.Time{} // there is none: its script is the last that is served to it
	}
	return p
}

// Upcoming is what comes after a stage, "" when nothing does. What firmware fetches
// after DHCP depends on the firmware.
func (b BootTrace) Upcoming(last BootStage) string {
	switch last {
	case StageArmed:
		return "DHCP or iPXE script"
	case StageDHCP:
		return "boot loader by TFTP or HTTP"
	case StageTFTP:
		return string(StageScript)
	case StageHTTPBoot:
		return "iPXE script or Ignition"
	case StageScript:
		if b.Ticket.Config == ThingScript {
			return string(b.Outcome())
		}
		return string(StageKernel)
	case StageKernel:
		return string(StageInitrd)
	case StageInitrd:
		return string(StageIgnition)
	case StageIgnition:
		if b.Ticket.Disk != nil {
			return string(StageDiskProbe)
		}
		return string(b.Outcome())
	case StageDiskProbe:
		return string(StageDiskChosen)
	case StageDiskChosen:
		return string(StageDiskWriting)
	case StageDiskWriting:
		return string(StageDiskVerified)
	case StageDiskVerified, StageDiskEntry:
		return string(StageDiskReboot)
	case StageDiskReboot:
		return string(b.Outcome())
	case StageReport, StageWipe, StageBootState:
	}
	return ""
}

// Ended reports whether the stage was seen that ends the boot.
func (b BootTrace) Ended() bool {
	steps := b.Steps()
	return len(steps) > 0 && steps[len(steps)-1].Stage == b.Outcome()
}

// Outcome is the stage that ends a boot for the ticket's purpose.
func (b BootTrace) Outcome() BootStage {
	switch b.Ticket.Purpose {
	case PurposeDiscovery:
		return StageReport
	case PurposeCleanup:
		return StageWipe
	case PurposeClaim:
	}
	return StageBootState
}

// Wiping is how far the wipe with the ticket is, nil if nothing was heard of it, or it
// is over.
func (b BootTrace) Wiping() *WipeProgress {
	if b.Ticket == nil || b.Wipe != nil && b.Wipe.Ticket == b.Ticket.ID || b.WipeProgress == nil || b.WipeProgress.Ticket != b.Ticket.ID {
		return nil
	}
	return b.WipeProgress
}

// String is the step in a word and its time of day.
func (s BootStep) String() string {
	return string(s.Stage) + " " + s.At.Format(time.TimeOnly) + "Z"
}

package proposal

import (
	"cmp"
	"fmt"
	"time"

	"ingot/model"
)

// Boot is what a ticket is armed for.
type Boot struct {
	Ticket          model.Ticket               // complete except for Image
	Image           string                     // OCI reference
	User            string                     // login user of the catalogue's entry, "" = unknown
	Architecture    string                     // amd64, arm64
	Secret          map[string]model.Sensitive // what the claim's Secret holds, by key; nil = the claim names none
	SecretObject    *model.Secret              // the object that Secret is of
	Namespace       string                     // the claim's; "" = it is for no claim
	KernelArguments string                     // added to those that every boot has
	SSHKeys         string                     // of the claim's annotation; not part of the digest
	Firmware        *model.BootFirmware        // by its DHCP requests, nil = unknown
	SecureBoot      bool                       // the server's firmware is known to check signatures
	Needs           Needs                      // what Image must have for the server to start it
	ForDisk
}

// ForDisk is what counts for a boot from a disk image.
type ForDisk struct {
	// Hints are the values of model.AnnotationRootDevice, of the Server and of its claim,
	// and RootDevice is the claim's. Seed is how the configuration reaches the system, by ClaimSeed.
	Hints                 []string
	Seed                  model.SeedKind
	RootDevice, ClaimSeed string
	ProbeImage            string            // OCI reference of the probe that writes the disk; "" = none is known
	Previous              *model.RootDisk   // the disk with the claim's last install, or a part of it; nil = none
	MayOverwrite          bool              // the claim lets what is on another disk be overwritten
	Doubtful              bool              // the last probe was sent something else than the image
	Disks                 []model.ProbeDisk // those that a probe reported last
}

// Config is what configures the machine where that is not Ignition.
func (b *Boot) Config() model.TicketThing {
	switch {
	case !b.Secret["user-data"].IsZero():
		return model.ThingCloudInit
	case b.OwnScript() && b.Secret["ignition"].IsZero():
		return model.ThingScript
	}
	return ""
}

// LoginUser is the user to log in as, who gets the keys of Ignition: that of the catalogue's entry, or else by the image's
// name, or of systems with Ignition; "" = unknown.
func (b *Boot) LoginUser() string {
	user := cmp.Or(b.User, model.LoginUser(b.Image))
	if user == "" && !b.Secret["ignition"].IsZero() && b.Config() == "" {
		return model.IgnitionUser
	}
	return user
}

// OwnScript reports whether the claim brings an iPXE script in place of Ingot's.
func (b *Boot) OwnScript() bool { return !b.Secret["ipxe-script"].IsZero() }

// Needs is what an image must have for its server to start it, each as a clause that says why, or "".
type Needs struct {
	UKI    string // the firmware starts nothing but a UKI
	Kernel string // the firmware starts no UKI
}

// Unmet is why an image cannot be started, nil when nothing is known against it.
func (n Needs) Unmet(image *model.PinnedImage) *Failure {
	switch {
	case n.UKI != "" && image.UKI == nil:
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no UKI layer, and %s", image.Ref, n.UKI)}
	case n.Kernel != "" && (image.Kernel == nil || image.Initrd == nil):
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no kernel and initramfs layers but a UKI, and %s", image.Ref, n.Kernel)}
	}
	return nil
}

// Firmware is what DHCP learned of the server's firmware, nil if nothing.
func Firmware(s *Server) *model.BootFirmware {
	if p := s.Observed.Progress[s.Name]; p != nil {
		return p.Firmware
	}
	return nil
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
	if a := s.Record.Power.Asked; a != nil && a.At.After(from) {
		from = a.At
	}
	length = usual[stage]
	if stage == model.StageArmed {
		length = max(length, s.Record.Boot.BootsAfter)
	}
	return length, s.NotedAt(from).Add(3 * length)
}

// Earlier is the earlier of two times; a zero time does not count.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// InstallSilence is how long the probe that writes a disk image may report nothing.
const InstallSilence = 5 * time.Minute

// FailedDisk reports whether the probe did not bring the disk image onto the disk.
func FailedDisk(p *model.BootProblem) bool { return p != nil && p.Stage != "" }

// DiskInstall is what was reported of the writing of the open ticket's disk image, nil if nothing was.
func DiskInstall(s *Server) *model.DiskInstall {
	p := s.Progress()
	if p == nil || !s.Opened(model.PurposeClaim) || s.Ticket().Disk == nil {
		return nil
	}
	return p.Install
}

// ReportedSinceOn reports whether an install reported anything since the power-on for it.
func ReportedSinceOn(s *Server, in *model.DiskInstall) bool {
	return in != nil && !(s.Begun() && in.ReportedAt.Before(s.NotedAt(s.Record.Power.Asked.At)))
}

// HasInstallPlace reports whether the server has one of the places of MaxConcurrentInstalls, to have a disk written.
func HasInstallPlace(s *Server) bool {
	switch {
	case !s.Opened(model.PurposeClaim) || s.Ticket().Disk == nil:
		return false
	case s.Record.Install.Reprovision != "" && !s.HasInstall() && !s.InstallUnknown() && !s.Begun():
		return true
	case s.Ticket().AwaitingOff || !s.Begun() || s.TicketState() == model.TicketIgnitionServed:
		return false
	}
	in := DiskInstall(s)
	if in != nil && in.Reason != "" {
		return false
	}
	// One whose power failed while it was written to goes on before others begin.
	return s.Power() == model.PowerOn || ComesOn(s) || ReportedSinceOn(s, in)
}

// NeedsInstallPlace reports whether what the open ticket is for takes such a place, once it begins.
func NeedsInstallPlace(s *Server) bool { return s.Ticket().Disk != nil && !HasInstallPlace(s) }

// Stranded reports whether the server was powered on and past its self-test while no Ingot answered: it has given up.
func Stranded(s *Server) bool {
	end := StrandedEnd(s)
	return !end.IsZero() && s.Power() == model.PowerOn && !s.Reading.POST && !s.Now.Before(end)
}

// StrandedEnd is when a server that was powered on before this process could be reached counts as stranded, if
// nothing is served to it before; zero = it does not. One with a slow firmware has longer.
func StrandedEnd(s *Server) time.Time {
	t := s.Ticket()
	if ReportedSinceOn(s, DiskInstall(s)) {
		return time.Time{} // its probe reports, or stalls, see boot.Window
	}
	if s.Serving.IsZero() || !t.Open() || t.AwaitingOff || !s.Begun() || !s.Record.Power.Asked.At.Before(s.Serving) ||
		s.TicketState() == model.TicketIgnitionServed || s.Progress().LastServed().After(s.Serving) {
		return time.Time{}
	}
	end := s.Serving.Add(s.Policy.StrandedAfter)
	if slow := s.Record.Power.Asked.At.Add(s.Record.Boot.BootsAfter + s.Policy.StrandedAfter/3); slow.After(end) {
		end = slow
	}
	return end
}

// ScriptLost is when a server was served its boot script and then asked for nothing more: the answer may not have
// arrived, and firmware does not ask again. Zero = it did ask, or one boot already ended so.
func ScriptLost(s *Server) (at time.Time) {
	first := 0
	if s.Opened(model.PurposeDiscovery) {
		first = 1 // which counts an attempt when it begins
	}
	p := s.Progress()
	if s.TicketState() != model.TicketScriptServed || !s.Begun() || s.Record.Boot.Attempts > first || s.Power() != model.PowerOn || s.Reading.POST {
		return at
	}
	at = p.ScriptAt
	for _, u := range p.Uses {
		if u.What == model.ThingScript && u.Served() && u.Last.After(at) {
			at = u.Last
		}
	}
	if !p.KernelAt.IsZero() || ReportedSinceOn(s, DiskInstall(s)) || at.Before(s.NotedAt(s.Record.Power.Asked.At)) {
		return time.Time{}
	}
	return at
}

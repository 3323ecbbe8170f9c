package proposal

import (
	"time"

	"ingot/model"
)

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

// HasInstallPlace reports whether the server takes one of the places of guard.maxConcurrentInstalls: it was powered
// off or on to have a disk image written, and that may go on.
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

// Stranded reports whether the server was powered on while no Ingot answered, so that its firmware has given up. One
// that is still in its power-on self-test has not come to ask.
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

// ScriptPatience is how long a server may take from its boot script to its next request.
const ScriptPatience = 3 * time.Minute

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

// Package event says what each part of a record makes of something that happened to its server.
package event

import (
	"cmp"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Kind is what has happened to a server.
type Kind string

// The events. How each part of the record changes with them is in the functions below.
const (
	Bound            Kind = "Bound"    // a claim gets it
	Adopted          Kind = "Adopted"  // a claim gets it as it runs
	Renamed          Kind = "Renamed"  // its claim has another name
	Released         Kind = "Released" // it is decided that its claim loses it
	GivenUp          Kind = "GivenUp"  // what it holds has to be wiped
	Freed            Kind = "Freed"    // each of its disks is accounted for
	Discovered       Kind = "Discovered"
	FoundRunning     Kind = "FoundRunning" // it runs what Ingot did not start
	Retried          Kind = "Retried"      // a person asks for a retry
	Installed        Kind = "Installed"    // its disk may hold what its ticket is for
	MaintenanceBegun Kind = "MaintenanceBegun"
	MaintenanceEnded Kind = "MaintenanceEnded"
)

// An Event is something that has happened to a server, or was decided for it.
type Event struct {
	Kind    Kind
	Claim   *model.ServerClaim // Bound, Adopted, Renamed
	Value   string             // Adopted: the digest of its system; FoundRunning: why; Maintenance: its purpose
	Power   model.Power        // MaintenanceBegun: that it begins with
	Release *model.Release     // Released
	MACs    []model.ServerMAC  // Discovered
	Proof   *proposal.Proof    // Freed
}

// After is the server after an event: each part of its record changes by itself.
func After(s *proposal.Server, e Event) *proposal.Server {
	return s.Change(func(rec *model.ServerRecord) {
		before := rec.Life.State
		installAfter(s, rec, e)
		bootAfter(s, rec, e)
		lifeAfter(s, &rec.Life, e)
		claimAfter(s, &rec.Claim, e)
		powerAfter(&rec.Power, e)
		serviceAfter(s, &rec.Maintenance, e)
		requestsAfter(rec, e)
		intentAfter(s, rec, e)
		switch e.Kind {
		case Freed:
			rec.Disks.Wiped, rec.Disks.Missing = e.Proof.Reported, e.Proof.Missing
		case Retried:
			rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem = nil, nil
		default:
		}
		if rec.Life.State != before {
			proposal.EnterState(rec, rec.Life.State, s.Now)
		}
	})
}

func lifeAfter(s *proposal.Server, l *model.RecordLife, e Event) {
	switch e.Kind {
	case Bound:
		l.State = model.StateReserved
	case Adopted:
		l.State, l.FoundRunning = model.StateReserved, time.Time{}
	case Released:
		l.LifeScratch = model.LifeScratch{}
	case GivenUp:
		l.State = model.StateCleanup
	case Freed, Discovered:
		l.State = model.StateAvailable
	case FoundRunning:
		l.FoundRunning, l.Message = s.Now, e.Value
	case Retried:
		l.LifeScratch = model.LifeScratch{}
		if l.State == model.StateError {
			l.State, l.Back = l.Back, ""
		}
	case MaintenanceBegun:
		l.Back, l.State = l.State, model.StateMaintenance
	case MaintenanceEnded:
		l.State, l.Back = l.Back, ""
	case Renamed, Installed:
	}
}

func claimAfter(s *proposal.Server, c *model.RecordClaim, e Event) {
	switch e.Kind {
	case Bound, Adopted:
		*c = model.RecordClaim{
			Name: e.Claim.ClaimName(), Renamed: s.Desired.LastRenaming(), BoundAt: s.Now, Tenant: e.Claim.Tenant, Power: e.Claim.Spec.Power,
			Cleanup: e.Claim.Annotations[model.AnnotationCleanup],
		}
		c.Image, _ = proposal.ResolveImage(s, e.Claim)
	case Renamed:
		c.Name, c.Renamed = e.Claim.ClaimName(), s.Desired.LastRenaming()
	case GivenUp:
		c.Name, c.Renamed, c.Tenant, c.Power, c.Image = "", "", "", "", nil
	case Freed:
		c.Cleanup = ""
	default:
	}
}

func powerAfter(p *model.RecordPower, e Event) {
	if e.Kind != Released && e.Kind != Retried && e.Kind != MaintenanceEnded {
		return
	}
	ForgetOff(p)
	switch {
	case p.Asked == nil || e.Kind == Released:
	case p.Asked.Unsure:
		p.Asked = nil // a person, or the maintenance, has settled it
	case e.Kind == Retried:
		ForgetAgain(p)
	}
}

// ForgetAgain has the power restored at once the next time, however often it was before.
func ForgetAgain(p *model.RecordPower) {
	if p.Asked != nil && p.Asked.Again > 0 {
		p.Asked = proposal.Changed(p.Asked, func(first *model.PowerAsked) { first.Again = 0 })
	}
}

// ForgetOff forgets a request to go off without effect, whose purpose has ended. The next one begins gracefully again.
func ForgetOff(p *model.RecordPower) {
	if a := p.Asked; a != nil && a.Want == model.PowerOff && !a.Reached {
		p.Asked = nil
	}
}

func bootAfter(s *proposal.Server, rec *model.ServerRecord, e Event) {
	b, asked, progress := &rec.Boot, s.Record.Power.Asked, s.Progress()
	switch e.Kind {
	case Renamed:
		if b.Ticket != nil && b.Ticket.Claim != "" {
			proposal.ChangeTicket(rec, func(t *model.Ticket) { t.Claim = e.Claim.ClaimName() })
		}
	case Released:
		revokeTicket(rec)
		b.Problem = nil
	case Freed:
		proposal.EndTicket(rec, model.TicketBooted)
	case Discovered:
		ForgetThefts(rec)
		noteBootsAfter(b, asked, progress)
		proposal.EndTicket(rec, model.TicketBooted)
	case FoundRunning:
		proposal.EndTicket(rec, model.TicketSpent)
	case Retried:
		bootRetried(s, rec)
	case Installed:
		b.Problem = nil
		noteBootsAfter(b, asked, progress)
	case MaintenanceBegun: // the ticket of an install is of no use during it
		if s.Opened(model.PurposeClaim) && s.TicketState() != model.TicketIgnitionServed {
			proposal.EndTicket(rec, model.TicketSpent)
		}
	case Bound, Adopted, GivenUp, MaintenanceEnded:
	}
	if slices.Contains([]Kind{Bound, Freed, Discovered, Retried, Installed}, e.Kind) {
		b.Attempts = 0
	}
}

// revokeTicket closes a ticket permanently: it boots nothing again.
func revokeTicket(rec *model.ServerRecord) {
	proposal.EndTicket(rec, model.TicketSpent)
	if t := rec.Boot.Ticket; t != nil && t.Always {
		proposal.ChangeTicket(rec, func(t *model.Ticket) { t.Always = false })
	}
}

func bootRetried(s *proposal.Server, rec *model.ServerRecord) {
	b := &rec.Boot
	failed := proposal.FailedBoot(b.Problem) && b.Ticket.State(s.Progress()) != model.TicketIgnitionServed
	if failed || s.InstallUnknown() { // or a person says that it is not installed
		proposal.EndTicket(rec, model.TicketSpent) // the next is one that the server is powered on for
	}
	b.Problem, b.NoDiskBoot = nil, nil
	ForgetThefts(rec)
}

func installAfter(s *proposal.Server, rec *model.ServerRecord, e Event) {
	i := &rec.Install
	switch e.Kind {
	case Bound:
		*i = model.RecordInstall{Replaces: i.Replaces}
	case Adopted:
		i.Digest, i.Unconfirmed = e.Value, time.Time{}
	case GivenUp:
		i.Digest, i.Unconfirmed = "", time.Time{}
	case Freed:
		i.RootDisk = nil
	case Installed:
		NoteDisk(s, rec)
		i.Digest, i.Reprovision, i.Unconfirmed, i.ReplacesImage = rec.Boot.Ticket.Digest, "", s.Now, nil
	default:
	}
}

func serviceAfter(s *proposal.Server, m *model.RecordMaintenance, e Event) {
	switch e.Kind {
	case MaintenanceBegun:
		m.By = e.Value
		if e.Power == model.PowerOn {
			m.Power = &model.MaintenancePower{Want: model.PowerOn, Due: true}
		}
	case MaintenanceEnded:
		if m.By != "" && m.By != model.OperationPark {
			m.ServicedAt = s.Now
		}
		m.By, m.Power = "", nil
	default:
	}
}

func requestsAfter(rec *model.ServerRecord, e Event) {
	if e.Kind == Bound || e.Kind == Adopted {
		proposal.ResetHandled(rec, proposal.AskedReprovision, e.Claim.Annotations[model.AnnotationReprovision])
	}
	if e.Kind == Bound {
		proposal.ResetHandled(rec, proposal.AskedOverwrite, "") // its first install asks for it as well as any other
	}
}

// intentAfter keeps the intent, the release and the doubt, each of which is one value.
func intentAfter(s *proposal.Server, rec *model.ServerRecord, e Event) {
	switch e.Kind {
	case Bound:
		rec.Release = nil
		Announce(s, rec, model.IntentBind, string(e.Claim.ClaimName()))
	case Adopted:
		Announce(s, rec, model.IntentAdopt, string(e.Claim.ClaimName()))
	case Renamed:
		if i := rec.Intent; i != nil && i.Value == string(s.Record.Claim.Name) {
			rec.Intent = proposal.Changed(i, func(i *model.Intent) { i.Value = string(e.Claim.ClaimName()) })
		}
	case Released:
		rec.Release = e.Release
		Announce(s, rec, model.IntentRelease, string(rec.Claim.Name))
	case GivenUp:
		rec.Doubt = nil
	case Freed:
		rec.Release, rec.Intent = nil, nil
	case Discovered:
		rec.MACs, rec.Intent = e.MACs, nil
	case Retried:
		if s.InstallUnknown() {
			rec.Doubt = nil // a person says that it is not installed
		}
	case MaintenanceEnded:
		rec.Intent = nil
	case FoundRunning, Installed, MaintenanceBegun:
	}
}

// Announce notes a decision that the status branch has to show before it is acted upon.
func Announce(s *proposal.Server, rec *model.ServerRecord, kind model.IntentKind, value string) {
	rec.Intent = &model.Intent{Kind: kind, Value: value, Revision: s.Desired.Revision}
}

// NoteDisk notes that the disk image of the server's ticket is on its disk, and uses up the request to overwrite
// it. With any other ticket the disks hold something.
func NoteDisk(s *proposal.Server, rec *model.ServerRecord) {
	t := rec.Boot.Ticket
	if t == nil || t.Disk == nil {
		rec.Install.RootDisk = nil // what was installed may be anywhere
		return
	}
	if to := t.Target; to != nil && to.Overwrite != "" {
		proposal.MarkHandled(rec, proposal.AskedOverwrite, to.Overwrite)
	}
	d := model.InstalledDisk{RootDevice: t.RootDevice()}
	if rec.Install.RootDisk != nil {
		d.RootDisk = rec.Install.RootDisk.RootDisk
	}
	if p := s.Progress(); p != nil && p.Install != nil && p.Install.Disk != nil {
		d.RootDisk = *p.Install.Disk
	}
	if d.RootDisk == (model.RootDisk{}) {
		return // it was lost with the store
	}
	d.VerifiedAt = cmp.Or(t.IgnitionAt, s.Now)
	rec.Install.RootDisk = &d
}

// ForgetThefts begins to count the thefts of tickets again. An exposed Secret stays on record.
func ForgetThefts(rec *model.ServerRecord) {
	if old := rec.Boot.Theft; old != nil && old.Count > 0 {
		rec.Boot.Theft = proposal.Changed(old, func(theft *model.Theft) { theft.Count = 0 })
	}
}

// noteBootsAfter records how long the server took from its power-on to its first request.
func noteBootsAfter(b *model.RecordBoot, asked *model.PowerAsked, p *model.Progress) {
	if p == nil || asked == nil {
		return
	}
	first := time.Time{}
	for _, at := range []time.Time{p.DHCPAt, p.TFTPAt, p.HTTPBootAt, p.ScriptAt} {
		if at.After(asked.At) {
			first = proposal.Earlier(first, at)
		}
	}
	if !first.IsZero() {
		b.BootsAfter = first.Sub(asked.At).Round(time.Second)
	}
}

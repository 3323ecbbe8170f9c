// Package proposal has the words that all packages of a plan share: actions, their answers, and why something waits.
package proposal

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/reading"
)

// Kind is what a proposal does, and so which laws apply to it.
type Kind int

// The kinds.
const (
	Look   Kind = iota // reads the machine, or records what was read
	Note               // records something that happened; nothing follows from it alone
	Decide             // takes a decision, and touches nothing
	Act                // carries a decision forward: a request to the BMC, a ticket, a new state
	Keep               // restores the power that a bound server had, from its disk
)

// Place is what the fleet has a limited number of.
type Place int

// The places.
const (
	PowerOnPlace     Place = iota // guard.maxConcurrentPowerOns
	InstallPlace                  // of MaxConcurrentInstalls
	ReprovisionPlace              // guard.maxConcurrentReprovisions
)

// A Proposal is one thing that could be done with one server now. It is a value: making one changes nothing.
type Proposal struct {
	Of      *Server // with the record as it is once all of Do is done
	Kind    Kind
	Do      []Action  // in order, stopping at the first that fails
	Waits   bool      // it does nothing but wait
	Routine bool      // it is a look whose result matters only if it is new
	Why     Why       // what is shown while it is under way
	Wake    time.Time // when to look again; zero = on a change

	Blind   bool              // it is a decision that needs no BMC: a silent one does not hold it
	Touches bool              // it changes what the machine does, though no action of it says so
	Takes   *model.Disruption // it takes something from the server's user
	Frees   *Proof            // it makes the server free for others
	Place   []Place           // the places that it needs
	What    Step              // as it is shown to people, if it takes nothing; "" = not shown

	Goal *Goal // the power that has to be reached first
	Arm  *Boot // what a ticket has to be made for
}

// A Goal is a power state to bring a server to, by a request, or a look while one is under way.
type Goal struct {
	Want  model.Power
	Reset model.ResetKind     // requested once, whatever the power state is; "" = what leads to Want
	Grace time.Duration       // a shutdown that takes longer is forced
	Again bool                // it restores a state that the server had: with pauses, if it does not stay
	From  BootSource          // of a power-on
	Then  *model.ServerRecord // the record once the power-on was requested; nil = that of Of

	Shutdown bool // the server was found running: it is shut down, and never forced off
}

// BootSource is where a server boots from.
type BootSource int

// The sources.
const (
	FromAnywhere BootSource = iota // the firmware decides
	FromDisk
	FromNetwork
)

// A Proof is what accounts for the disks of a server that becomes free.
type Proof struct {
	Mode     string // of the wipe
	Reported []model.DiskWipe
	Missing  []model.MissingDisk
}

// Stay proposes the server's record, after some actions.
func (s *Server) Stay(kind Kind, do ...Action) Proposal { return Proposal{Of: s, Kind: kind, Do: do} }

// Enter proposes another state, after some actions.
func (s *Server) Enter(kind Kind, state model.ServerState, do ...Action) Proposal {
	return s.Change(func(rec *model.ServerRecord) { EnterState(rec, state, s.Now) }).Stay(kind, do...)
}

// EnterState notes that a server is in another state.
func EnterState(rec *model.ServerRecord, state model.ServerState, now time.Time) {
	rec.Life.State, rec.Life.Since, rec.Boot.Problem = state, now, nil
	if state != model.StateError {
		rec.Life.Reason, rec.Life.Message = "", ""
	}
}

// Fail proposes state Error, to return to the present one once the cause is gone. A verified disk image waits for
// that: its ticket no longer boots anything, and ending it would have the image written again.
func (s *Server) Fail(kind Kind, reason, message string) Proposal {
	holdsImage := s.Opened(model.PurposeClaim) && s.Ticket().Disk != nil && s.TicketState() == model.TicketIgnitionServed
	return s.Change(func(rec *model.ServerRecord) {
		rec.Life.Back, rec.Life.Reason, rec.Life.Message = rec.Life.State, reason, message
		if !holdsImage {
			EndTicket(rec, model.TicketSpent)
		}
	}).Enter(kind, model.StateError)
}

// Wait proposes to wait until a time.
func (s *Server) Wait(until time.Time, why Why) Proposal {
	return Proposal{Of: s, Kind: Look, Waits: true, Why: why, Wake: until}
}

// Watch proposes to read the power state when it is due.
func (s *Server) Watch(due time.Time, why Why) Proposal {
	if s.Now.Before(due) {
		return s.Wait(due, why)
	}
	p := s.Stay(Look, Inspect{})
	p.Why = why
	return p
}

// Rest reads the power state at an interval, and the parts once a day: there is nothing else to do.
func (s *Server) Rest(why Why) Proposal {
	p := s.Watch(NextPoll(s, s.Reading.At), why)
	if !p.Waits {
		p.Routine = true
		if partsDue(s) {
			p.Do = []Action{Inspect{Inventory: true}}
		}
		p.Wake = NextPoll(s, s.Now)
	}
	return p
}

// Inspect proposes to read the server at once, with all its parts.
func (s *Server) Inspect() Proposal { return s.Stay(Look, Inspect{Inventory: true}) }

// ProbeGrace is how long the probe's own system, which holds nothing of value, may take to shut down.
const ProbeGrace = 30 * time.Second

// ToOff proposes to bring the server to a confirmed Off, by force after grace.
func (s *Server) ToOff(grace time.Duration) Proposal {
	return Proposal{Of: s, Kind: Act, Goal: &Goal{Want: model.PowerOff, Grace: grace}}
}

// ToOn proposes to power the server on once; then is its record from then on.
func (s *Server) ToOn(kind Kind, from BootSource, then func(rec *model.ServerRecord)) Proposal {
	g := &Goal{Want: model.PowerOn, From: from, Again: kind == Keep}
	if then != nil || from == FromNetwork {
		g.Then = s.Change(func(rec *model.ServerRecord) {
			if from == FromNetwork {
				rec.Install.Replaces = ""
			}
			if then != nil {
				then(rec)
			}
		}).Record
	}
	return Proposal{Of: s, Kind: kind, Goal: g}
}

// ToArm proposes a new boot ticket.
func (s *Server) ToArm(purpose model.TicketPurpose, b Boot) Proposal {
	b.Ticket.Purpose = purpose
	return Proposal{Of: s, Kind: Act, Arm: &b}
}

// WakeBy makes sure that the server is looked at again at a time.
func (p Proposal) WakeBy(at time.Time) Proposal {
	p.Wake = Earlier(p.Wake, at)
	return p
}

// Ends reports whether it presupposes that a commit removed the server's claim.
func (p *Proposal) Ends() bool {
	return p.Takes != nil && (p.Takes.Action == StepRelease || p.Takes.Action == StepRetain)
}

// As returns the proposal as people are shown it.
func (p Proposal) As(what Step) Proposal {
	p.What = what
	return p
}

// Taking returns the proposal as one that takes something from the server's user.
func (p Proposal) Taking(action, value string) (Proposal, bool) {
	p.Takes = &model.Disruption{Action: action, Value: value}
	return p, true
}

// Step is the proposal as people are shown it, "" if they are not.
func (p *Proposal) Step() Step {
	if p.Takes != nil {
		return Step(p.Takes.Action)
	}
	return p.What
}

// Rests reports whether it does nothing, or nothing but a routine look.
func (p *Proposal) Rests() bool { return p.Waits || p.Routine }

// NextPoll is when a server is read again. Polls are spread by name, in slots, so that one plan begins those of many.
func NextPoll(s *Server, last time.Time) time.Time {
	every := s.Policy.PollInterval
	spread := time.Duration((policy.Jitter(s.Name) - 0.5) / 5 * float64(every))
	slot := max(every/64, 1)
	next := last.Add(every + spread).Round(0)
	return next.Add(slot - time.Duration(next.UnixNano())%slot)
}

// EndTicket closes an open ticket.
func EndTicket(rec *model.ServerRecord, as model.TicketState) {
	if rec.Boot.Ticket.Open() {
		ChangeTicket(rec, func(t *model.Ticket) { t.Ended = as })
	}
}

// ChangeTicket replaces the ticket by a changed copy.
func ChangeTicket(rec *model.ServerRecord, change func(t *model.Ticket)) {
	rec.Boot.Ticket = Changed(rec.Boot.Ticket, change)
}

// A Step is what a proposal does to a server, as people are shown it.
type Step string

// The steps. Those of the first group take something from a server's user, if it has one.
const (
	StepRelease     = "release"
	StepRetain      = "retain"
	StepWipe        = "wipe" // of a Released server
	StepReprovision = "reprovision"
	StepMaintenance = "maintenance"
	StepPowerOff    = "power-off"
	StepOperation   = "operation"
	StepDiscover    = "discover"

	StepBind    = "bind"
	StepAdopt   = "adopt"
	StepRename  = "rename"
	StepKeep    = "keep" // for its claim, which is back
	StepReturn  = "return"
	StepPowerOn = "power-on"
	StepForget  = "forget"
	StepBoot    = "boot" // from elsewhere, from the next boot on
	StepSetting = "setting"
	StepTouch   = "touch" // any other request to the machine
)

// partsDue reports whether the parts of a server at rest have to be read with its power.
func partsDue(s *Server) bool {
	inv, now := s.Facts.Inventory, s.Now
	if inv == nil || now.Before(s.Reading.PartsAfter) {
		return false // the server's life reads them when it needs them
	}
	read := s.Reading.InventoryAt
	p := s.Record.Boot.Problem
	blocked := p != nil && p.Reason == model.ReasonSecureBootBlocksProbe // until it is switched off
	switch {
	case mayLack(inv, !read.IsZero()) && !s.Reading.InventoryOn && s.Power() == model.PowerOn && s.Reading.Runs():
		return true
	case (len(inv.Problems) > 0 || blocked) && !now.Before(partsAgain(s)):
		return true
	case read.IsZero():
		return now.Sub(partsTime(s)) < reading.PartsLate
	}
	return read.Before(partsTime(s))
}

// mayLack reports whether parts may be missing that only show while the server is on. Of a server that was not read
// since the start, missing drives and network cards can wait.
func mayLack(inv *model.Inventory, wasRead bool) bool {
	hasDrives := slices.ContainsFunc(inv.Storages, func(s model.Storage) bool { return len(s.Drives) > 0 })
	return len(inv.Processors) == 0 || inv.MemoryBytes == 0 || wasRead && (!hasDrives || len(inv.MACs()) == 0)
}

// partsAgain is when parts that could not be read are due: after a pause, and after a start one server after another.
func partsAgain(s *Server) time.Time {
	if s.Reading.InventoryAt.IsZero() {
		return s.Started.Add(time.Duration(policy.Jitter(s.Name) * float64(reading.PartsLate)))
	}
	return s.Reading.InventoryAt.Add(s.Reading.PartsPause())
}

// partsTime is when the parts of the server were due last: by its name each has its time of the day.
func partsTime(s *Server) time.Time {
	spread := time.Duration(policy.Jitter(s.Name) * float64(reading.PartsEvery))
	return s.Now.Add(-spread).Truncate(reading.PartsEvery).Add(spread)
}

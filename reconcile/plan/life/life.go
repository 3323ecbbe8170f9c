// Package life takes a server from one state of its life to the next. It owns its life, its claim and its release.
package life

import (
	"cmp"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// onReadings is how often in a row a server is read On to count as running: BMCs are wrong after a reset.
const onReadings = 2

// Live proposes what the state of a server asks for, where no other package owns that.
func Live(s *server) (p proposal.Proposal, ok bool) {
	switch s.State() {
	case model.StateInitial:
		return initial(s), true
	case model.StateDiscovery:
		return discovery(s), true
	case model.StateAvailable:
		return available(s), true
	case model.StateReserved:
		return reserved(s)
	case model.StateReleased:
		return released(s), true
	case model.StateError:
		return erroneous(s), true
	case model.StateCleanup, model.StateMaintenance:
		return p, false
	}
	return s.Rest(s.WhyBy(model.ReasonUnknownState, "its record has the unknown state "+string(s.State()), proposal.RackOperator)), true
}

func available(s *server) proposal.Proposal {
	switch {
	case s.Ticket().Open():
		return s.Change(func(rec *model.ServerRecord) { proposal.EndTicket(rec, model.TicketSpent) }).Stay(proposal.Look)
	case s.Power() == model.PowerOn && s.Reading.Ons < onReadings && !s.GoingOff():
		return s.Watch(s.Reading.At.Add(s.Policy.ConfirmEvery), s.Why(model.ReasonWaitingForPowerOff, "its BMC says that it is "+
			"on, though Ingot did not switch it on: reading it again to make sure"))
	case s.Power() == model.PowerOn:
		return offAgain(s)
	case s.Reading.Offs < s.Policy.OffReadings:
		return s.ToOff(s.Policy.PowerOffGrace)
	case s.Binds != nil:
		return event.After(s, event.Event{Kind: event.Bound, Claim: s.Binds}).Stay(proposal.Decide).As(proposal.StepBind)
	}
	return s.Rest(cmp.Or(s.Duplicate, awaitsConditions(s)))
}

func offAgain(s *server) proposal.Proposal {
	p := s.ToOff(s.Policy.PowerOffGrace)
	p.Goal.Again = true
	return p
}

func awaitsConditions(s *server) proposal.Why {
	var texts []string
	for _, t := range s.Conditions[s.Name] {
		if t.Effect != model.TaintEvict {
			texts = append(texts, "ServerReadinessRule "+t.Rule+" keeps taint "+t.Key+" on it: "+t.Unmet)
		}
	}
	if len(texts) == 0 {
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonConditionsUnmet, strings.Join(texts, "; "), proposal.RackOperator)
}

// reserved serves a server's claim, as far as no install is concerned.
func reserved(s *server) (p proposal.Proposal, ok bool) {
	switch {
	case s.Record.Release != nil:
		return releasing(s), true
	case s.Claim == nil: // Git lacks it, and no commit removed it: it stays as it was, see KeepPower
		back := s.Record.Claim.Power == model.PowerOn && s.Power() == model.PowerOff && s.InstallUnknown()
		return s.ToOn(proposal.Keep, proposal.FromDisk, nil), back
	case s.ClaimAnnotation(model.AnnotationOperation) == model.OperationIgnore:
		return s.Rest(s.WhyBy(model.ReasonIgnored, "suspended by annotation "+model.AnnotationOperation+": ignore", proposal.Tenant)), true
	case s.Record.Claim.Power == model.PowerOff:
		return keepOff(s)
	}
	return p, false
}

// DecidePower decides that the claim's server has another power state.
func DecidePower(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateReserved || s.Record.Release != nil || s.Claim == nil || s.Record.Claim.Power == s.Claim.Spec.Power ||
		s.ClaimAnnotation(model.AnnotationOperation) == model.OperationIgnore {
		return p, false
	}
	want, had := s.Claim.Spec.Power, s.Record.Claim.Power
	p = s.Change(func(rec *model.ServerRecord) {
		if had != "" {
			event.Announce(s, rec, model.IntentPower, string(want))
		}
		rec.Claim.Power = want
		event.ForgetOff(&rec.Power)
		event.ForgetAgain(&rec.Power)
	}).Stay(proposal.Decide)
	switch {
	case want == model.PowerOff && had == model.PowerOn:
		p.Takes = &model.Disruption{Action: proposal.StepPowerOff, Value: string(model.PowerOff)}
	case had == model.PowerOff:
		p.What = proposal.StepPowerOn
	}
	return p, true
}

// keepOff keeps the server off. An open ticket is of no use meanwhile.
func keepOff(s *server) (p proposal.Proposal, ok bool) {
	switch {
	case s.Power() == model.PowerOn:
		return offAgain(s), true
	case !s.IsOff():
		return s.ToOff(s.Policy.PowerOffGrace), true
	case !s.Shown:
		return p, false
	case s.Opened(model.PurposeClaim) && s.TicketState() != model.TicketIgnitionServed:
		return s.Change(func(rec *model.ServerRecord) { proposal.EndTicket(rec, model.TicketSpent) }).Stay(proposal.Act), true
	}
	return s.Rest(proposal.Why{}), true
}

// KeepPower restores the power of a bound server, from its disk, while a decision must not begin yet.
func KeepPower(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateReserved || !s.HasInstall() || s.Power() != model.PowerOff || s.Record.Release != nil && s.Shown {
		return p, false
	}
	i := s.Record.Intent
	turningOff := !s.Shown && i != nil && i.Kind == model.IntentPower
	if turningOff && i.Value == string(model.PowerOn) || s.Record.Claim.Power != model.PowerOn && !turningOff {
		return p, false
	}
	return s.ToOn(proposal.Keep, proposal.FromDisk, nil), true
}

// erroneous leaves a server alone until its cause is gone or a person says so.
func erroneous(s *server) proposal.Proposal {
	l := s.Record.Life
	switch {
	case l.Reason == model.ReasonPowerOutcomeUnknown && s.Reached():
		return s.Change(func(rec *model.ServerRecord) { rec.Life.Back, rec.Life.LastError = "", "" }).Enter(proposal.Act, l.Back)
	case l.Reason == model.ReasonMachineAmbiguous && identified(s):
		return s.Change(func(rec *model.ServerRecord) { rec.Life.Back, rec.Boot.Attempts = "", 0 }).Enter(proposal.Act, model.StateInitial)
	}
	return s.Rest(s.WhyBy(l.Reason, l.Message, proposal.RackOperator))
}

// Retry leaves Error, or drops the pause after a failure, when Git asks for a retry.
func Retry(s *server) (p proposal.Proposal, ok bool) {
	name, value := s.Requested()
	if name != model.OperationRetry || proposal.WasHandled(s.Record, proposal.AskedOperation, value) {
		return p, false
	}
	s = event.After(s, event.Event{Kind: event.Retried})
	return s.Change(func(rec *model.ServerRecord) { proposal.MarkHandled(rec, proposal.AskedOperation, value) }).Stay(proposal.Note).As(proposal.StepOperation), true
}

// Rename has the record say what the claim is called now.
func Rename(s *server) (p proposal.Proposal, ok bool) {
	if s.Renamed == nil || s.Claim != nil {
		return p, false
	}
	return event.After(s, event.Event{Kind: event.Renamed, Claim: s.Renamed}).Stay(proposal.Note).As(proposal.StepRename), true
}

// NoteClaim records whose the server's claim is, which one tenant may hand to another, what the name of its image means,
// and how it asks for its disks to be wiped: by then the claim is gone.
func NoteClaim(s *server) (p proposal.Proposal, ok bool) {
	claim := s.Record.Claim
	if s.Claim == nil || claim.Name != s.Claim.ClaimName() {
		return p, false
	}
	claim.Tenant = s.Claim.Tenant
	if s.Record.Release == nil {
		claim.Cleanup = s.ClaimAnnotation(model.AnnotationCleanup)
		if image, why := proposal.ImageOf(s, s.Claim); why.Reason == "" {
			claim.Image = image
		}
	}
	if claim == s.Record.Claim {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) { rec.Claim = claim }).Stay(proposal.Note), true
}

func foundRunning(s *server) bool { return !s.Record.Life.FoundRunning.IsZero() }

// noteRunning records that the server runs what Ingot did not start, and closes its ticket.
func noteRunning(s *server, because string) proposal.Proposal {
	return event.After(s, event.Event{Kind: event.FoundRunning, Value: because}).Stay(proposal.Look)
}

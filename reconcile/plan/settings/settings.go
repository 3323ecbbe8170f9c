// Package settings keeps the settings of BMCs and firmware, to which it owns the part of a record, as Git says.
package settings

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Attempts is how often a BMC is asked for a setting that it refuses: some take a while to show it.
const Attempts = 3

// Propose adds a setting to what is done with a server that rests, if one is not as Git says.
func Propose(s *server, p proposal.Proposal) proposal.Proposal {
	if s.Manifest == nil || s.Facts.Inventory == nil || s.Stored == nil || s.Blocked.Reason != "" || s.Reading.At.IsZero() || s.Reading.Failures > 0 ||
		s.Duplicate.Reason != "" || s.Contradicted.Reason != "" {
		return p
	}
	return orderBoot(s, indicate(s, p))
}

// postponed reports whether a setting that failed must not be asked for now, and until when; zero = a change.
func postponed(s *server, p *model.SettingProblem, want string) (until time.Time, off bool) {
	switch {
	case p == nil || p.Want != want || p.Firmware != s.BMC.Firmware:
		return time.Time{}, false
	case Refused(p):
		return time.Time{}, true
	}
	until = s.PauseEnd(p.NotBefore, s.Policy.BackoffMax)
	return until, s.Now.Before(until)
}

// Refused reports whether a setting is not asked for again by itself.
func Refused(p *model.SettingProblem) bool {
	lasting := p.Reason == model.ReasonReadOnlyAccount || slices.Contains(proposal.LastingReasons, p.Reason) // the account may not do it
	return lasting && p.Failures >= Attempts
}

// indicate sets the indicator of a server, in any state: it disturbs nothing that runs.
func indicate(s *server, p proposal.Proposal) proposal.Proposal {
	inv := s.Facts.Inventory
	want, shown := s.Manifest.Spec.IndicatorLED, model.Indicator{LED: inv.IndicatorLED, OnOff: inv.IndicatorOnOff}
	if want == "" || want == model.IndicatorUnknown || shown.Shows(want) {
		return p
	}
	if until, off := postponed(s, s.Stored.Settings.IndicatorProblem, want); off {
		return p.WakeBy(until)
	}
	return set(s, p, proposal.SetIndicator{To: want, Firmware: s.BMC.Firmware})
}

// set has a setting done in place of a look.
func set(s *server, p proposal.Proposal, do proposal.Action) proposal.Proposal {
	p.Of, p.Do, p.Waits, p.Routine = s.With(s.Stored), []proposal.Action{do}, false, false
	return p.As(proposal.StepSetting)
}

// orderBoot sets the boot order of a server that is Available and off, so that no claim's next boot is another one.
func orderBoot(s *server, p proposal.Proposal) proposal.Proposal {
	rec, want := s.Stored, s.Manifest.Spec.BootOrder
	if !p.Rests() || len(want) == 0 || !atRest(s) {
		return p
	}
	inv := s.Facts.Inventory
	key := model.BootOrderKey(want, s.BMC.Firmware, inv.BootOrder)
	started, report := rec.Settings.BootOrderPending, s.Observed.Probes[s.Name]
	if started != nil && !s.Progress().LastServed().After(started.Since) && (report == nil || !report.ReceivedAt.After(started.Since)) {
		started = nil // the machine was not seen to start since: it may well be pending
	}
	if rec.Settings.BootOrderSet == key && started == nil {
		return p
	}
	if until, off := postponed(s, rec.Settings.BootOrderProblem, key); off {
		return p.WakeBy(until)
	}
	return set(s, p, proposal.SetBootOrder{Wanted: want, Known: inv.BootOrder, Firmware: s.BMC.Firmware, Started: started})
}

// atRest reports whether the server is certain to be off and to be used by no claim.
func atRest(s *server) bool {
	return s.Stored.Life.State == model.StateAvailable && s.Record.Life.State == model.StateAvailable && s.IsOff() &&
		s.Claim == nil && s.Binds == nil && !s.Stored.Boot.Ticket.Open() && !s.Now.Before(s.NotBefore()) && s.Record.Life.FoundRunning.IsZero()
}

package plan

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// settingAttempts is how often a BMC is asked for a setting that it refuses, or does not
// keep: some show what they were given only after a while.
const settingAttempts = 3

// reachable reports whether a request to the server's BMC would reach its machine, as far as
// is known, and may be made.
func (s *server) reachable() bool {
	return s.blocked.Reason == "" && s.fleet.observeOnly.Reason == "" && !s.reading.At.IsZero() && s.reading.Failures == 0
}

// postponed reports whether a setting is not to be asked for now, because that failed, and
// until when; the zero time = until something changes.
func (s *server) postponed(p *model.SettingProblem, want string) (until time.Time, off bool) {
	switch {
	case p == nil || p.Want != want || p.Firmware != s.bmcFirmware():
		return time.Time{}, false
	case SettingRefused(p):
		return time.Time{}, true
	}
	until = s.fleet.pauseEnd(p.NotBefore, s.fleet.in.Policy.BackoffMax)
	return until, s.now().Before(until)
}

// SettingRefused reports whether a setting is not asked for again by itself.
func SettingRefused(p *model.SettingProblem) bool {
	lasting := p.Reason == model.ReasonAuthenticationFailed || slices.Contains(proposal.LastingReasons, p.Reason) // the account may not do it
	return lasting && p.Failures >= settingAttempts
}

// settingProblem is what becomes of a setting's problem after an answer that failed, and
// notes that the move did not. If nothing was learned of the setting, it is the old one.
func (o *outcome) settingProblem(old *model.SettingProblem, want, firmware string, a *proposal.Answer) *model.SettingProblem {
	f := a.Failed
	if f.Kind == proposal.FailureStopped || f.OtherMachine() {
		return old
	}
	p := &model.SettingProblem{Want: want, Reason: f.Reason, Message: f.Text, Since: a.At, Firmware: firmware}
	if old != nil && old.Want == want && old.Firmware == firmware {
		p.Failures = old.Failures
		if old.Reason == p.Reason {
			p.Since = old.Since
		}
	}
	p.Failures++
	p.NotBefore = a.At.Add(proposal.Backoff(o.rec.Name, p.Failures, *o.was.policy))
	o.failed, o.decided = nil, true
	return p
}

// learn is a copy of the server's inventory that is saved with what it is given of a setting.
func (o *outcome) learn() *model.Inventory {
	facts := &model.ServerFacts{Name: o.rec.Name, Inventory: new(model.Inventory)}
	if o.facts != nil {
		facts.Power = o.facts.Power
		if o.facts.Inventory != nil {
			*facts.Inventory = *o.facts.Inventory
		}
	}
	o.facts, o.learned = facts, true
	return facts.Inventory
}

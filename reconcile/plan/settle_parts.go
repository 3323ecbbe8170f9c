package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/settings"
)

// diskOnce notes whether the BMC sets a one-time boot from disk. One that has none is not
// asked for it again; whatever it answers, the server is powered on next.
func (o *outcome) diskOnce(do proposal.DiskOnce, a *proposal.Answer) {
	f := a.Failed
	o.failed = nil
	switch {
	case f == nil:
		o.rec.Boot.NoDiskBoot = nil
	case f.Lasting():
		o.rec.Boot.NoDiskBoot = &model.NoDiskBoot{Reason: f.Reason, Message: f.Text, Since: a.At, Firmware: do.Firmware}
	}
}

// settingProblem is the problem of a setting after an answer that failed, and
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
	p.NotBefore = a.At.Add(policy.Backoff(o.rec.Name, p.Failures, *o.was.policy))
	o.failed, o.decided = nil, true
	return p
}

// learn is a copy of the server's inventory that is saved once a setting is entered in it.
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

// setIndicator notes what the indicator shows, or why it is not as it should be: nothing
// else waits for that.
func (o *outcome) setIndicator(do proposal.SetIndicator, a *proposal.Answer) {
	if a.Failed != nil {
		o.rec.Settings.IndicatorProblem = o.settingProblem(o.rec.Settings.IndicatorProblem, do.To, do.Firmware, a)
		return
	}
	inv := o.learn()
	inv.IndicatorLED, inv.IndicatorOnOff = a.Indicator.LED, a.Indicator.OnOff
	if o.rec.Settings.IndicatorProblem != nil {
		o.rec.Settings.IndicatorProblem, o.decided = nil, true
	}
}

// setBootOrder notes the boot order, or why it is not as it should be: nothing else waits for
// that.
func (o *outcome) setBootOrder(do proposal.SetBootOrder, a *proposal.Answer) {
	key := model.BootOrderKey(do.Wanted, do.Firmware, do.Known)
	switch {
	case a.Failed != nil:
		o.rec.Settings.BootOrderProblem = o.settingProblem(o.rec.Settings.BootOrderProblem, key, do.Firmware, a)
		return
	case do.Started != nil && a.BootOrder.Pending() && slices.Equal(a.BootOrder.Next, do.Started.Order):
		o.rec.Settings.BootOrderProblem = &model.SettingProblem{
			Want: key, Reason: model.ReasonSettingNotKept, Since: a.At, Firmware: do.Firmware, Failures: settings.Attempts,
			Message: fmt.Sprintf("%s has been pending since %s, and the machine has started since with %s",
				strings.Join(a.BootOrder.Next, ", "), text.Time(do.Started.Since), strings.Join(a.BootOrder.Now, ", ")),
		}
		o.rec.Settings.BootOrderSet, o.rec.Settings.BootOrderPending = "", nil
	default:
		o.rec.Settings.BootOrderSet = model.BootOrderKey(do.Wanted, do.Firmware, a.BootOrder.Now)
		o.rec.Settings.BootOrderPending, o.rec.Settings.BootOrderProblem = pendingOrder(o.rec.Settings.BootOrderPending, a), nil
	}
	o.learn().BootOrder = a.BootOrder.Now
	o.decided = true
}

// pendingOrder is what of an answer is pending, since when it has been as far as old knows.
func pendingOrder(old *model.PendingBootOrder, a *proposal.Answer) *model.PendingBootOrder {
	switch {
	case !a.BootOrder.Pending():
		return nil
	case old != nil && slices.Equal(old.Order, a.BootOrder.Next):
		return old
	}
	return &model.PendingBootOrder{Order: a.BootOrder.Next, Since: a.At}
}

// armProblem is the problem of a boot that could not be armed.
func armProblem(old *model.BootProblem, name model.ServerName, do proposal.Arm, f *proposal.Failure, now time.Time, p policy.Options) *model.BootProblem {
	b := &do.Boot
	problem := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if f.Reason == "" {
		problem.Reason, problem.Message = model.ReasonArmFailed, f.By(do)
	}
	if proposal.Concerns(old, b) {
		problem.Failures = old.Failures
		if old.Reason == problem.Reason {
			problem.Since = old.Since
		}
	}
	problem.Failures++
	problem.NotBefore = now.Add(policy.Backoff(name, problem.Failures, p))
	return &problem
}

// prepares notes how far the server's image has been prepared: that is not a failure, and is
// checked again after a few seconds.
func (o *outcome) prepares(s *proposal.Settled, do proposal.Arm, f *proposal.Failure, now time.Time) {
	o.reading.PreparedAfter = now.Add(install.PreparedEvery - time.Duration(float64(install.PreparedEvery)/2*policy.Jitter(o.rec.Name)))
	rec, b := o.before(), &do.Boot
	p := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if old := rec.Boot.Problem; proposal.Concerns(old, b) && old.Reason == f.Reason {
		p.Since = old.Since
	}
	if rec.Boot.Problem == nil || *rec.Boot.Problem != p {
		rec.Boot.Problem = &p
		s.Servers = append(s.Servers, rec)
	}
}

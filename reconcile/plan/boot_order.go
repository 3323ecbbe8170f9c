package plan

import (
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// orderBoot has the firmware boot in the order that Git says, of a server that is Available,
// confirmed to be off, and has nothing else to do: nobody's machine, so that nobody's next
// boot is another one by that.
func (s *server) orderBoot(st Step) Step {
	inv, rec := s.facts.Inventory, s.stored
	rests := st.Queued == nil && (st.Move == nil || st.Move.Routine)
	if !rests || s.spec == nil || len(s.spec.Spec.BootOrder) == 0 || inv == nil || rec == nil || !s.atRest(rec) {
		return st
	}
	want, firmware := s.spec.Spec.BootOrder, s.bmcFirmware()
	key := model.BootOrderKey(want, firmware, inv.BootOrder)
	started := s.startedWith(rec.Settings.BootOrderPending)
	if rec.Settings.BootOrderSet == key && started == nil {
		return st
	}
	if until, off := s.postponed(rec.Settings.BootOrderProblem, key); off {
		return st.wakeBy(until)
	}
	st.Move = &Move{Do: []proposal.Action{proposal.SetBootOrder{Wanted: want, Known: inv.BootOrder, Firmware: firmware, Started: started}}, Then: rec}
	return st
}

// atRest reports whether the server is certain to be off and to be used by nobody, now and by
// this plan.
func (s *server) atRest(rec *model.ServerRecord) bool {
	return rec.Life.State == model.StateAvailable && s.rec.Life.State == model.StateAvailable &&
		s.power() == model.PowerOff && s.reading.Offs >= s.fleet.in.Policy.OffReadings &&
		s.claim == nil && s.bind == nil && !rec.Boot.Ticket.Open() && !s.putOff() &&
		s.reachable() && s.duplicate().Reason == "" && !s.fleet.isContradicted(s)
}

// startedWith returns p if the machine was seen to start since, so that nothing is pending any
// more where its firmware does as it should.
func (s *server) startedWith(p *model.PendingBootOrder) *model.PendingBootOrder {
	if p == nil {
		return nil
	}
	report := s.fleet.in.Observed.Probes[s.name]
	if proposal.LastServed(s.progress()).After(p.Since) || report != nil && report.ReceivedAt.After(p.Since) {
		return p
	}
	return nil
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
			Want: key, Reason: model.ReasonSettingNotKept, Since: a.At, Firmware: do.Firmware, Failures: settingAttempts,
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

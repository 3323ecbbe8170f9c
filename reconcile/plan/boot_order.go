package plan

import "ingot/model"

// orderBoot has the firmware boot in the order that Git says, of a server that is Available,
// confirmed to be off, and has nothing else to do: nobody's machine, so that nobody's next
// boot is another one by that.
func (s *server) orderBoot(st Step) Step {
	inv, rec := s.facts.Inventory, s.fleet.in.Observed.Servers[s.name]
	rests := st.Queued == nil && (st.Move == nil || st.Move.Routine)
	if !rests || s.spec == nil || len(s.spec.Spec.BootOrder) == 0 || inv == nil || rec == nil || !s.atRest(rec) {
		return st
	}
	want, firmware := s.spec.Spec.BootOrder, s.bmcFirmware()
	key := model.BootOrderKey(want, firmware, inv.BootOrder)
	if rec.BootOrderSet == key {
		return st
	}
	if until, off := s.postponed(rec.BootOrderProblem, key); off {
		return st.wakeBy(until)
	}
	st.Move = &Move{Do: []Action{SetBootOrder{Wanted: want, Known: inv.BootOrder, Firmware: firmware}}, Then: rec}
	return st
}

// atRest reports whether the server is certain to be off and to be used by nobody, now and by
// this plan.
func (s *server) atRest(rec *model.ServerRecord) bool {
	return rec.State == model.StateAvailable && s.rec.State == model.StateAvailable &&
		s.power() == model.PowerOff && s.reading.Offs >= s.fleet.in.Policy.OffReadings &&
		s.claim == nil && s.bind == nil && !rec.Ticket.Open() && !s.putOff() &&
		s.reachable() && s.duplicate().Reason == "" && !s.fleet.isContradicted(s)
}

// setBootOrder notes the boot order, or why it is not as it should be: nothing else waits for
// that.
func (o *outcome) setBootOrder(do SetBootOrder, a *Answer) {
	if a.Failed != nil {
		key := model.BootOrderKey(do.Wanted, do.Firmware, do.Known)
		o.rec.BootOrderProblem = o.settingProblem(o.rec.BootOrderProblem, key, do.Firmware, a)
		return
	}
	o.learn().BootOrder = a.BootOrder
	o.rec.BootOrderSet = model.BootOrderKey(do.Wanted, do.Firmware, a.BootOrder)
	o.rec.BootOrderProblem, o.decided = nil, true
}

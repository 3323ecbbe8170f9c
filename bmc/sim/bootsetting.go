package sim

// setBoot sets the boot override, as far as the vendor and the faults have it.
func setBoot(v view, value any) *message {
	s := v.server()
	if order, only := sentOrder(value); only && s.ordersLater() {
		return newMessage(msgFutureState, s.settingsURI()).about("#/Boot/BootOrder")
	} else if only {
		return s.setBootOrder(order, s.SetNetworkFirst)
	}
	if v.bmc.rack.kind.boot.rule == overrideInSettings || s.faults.has(FaultOverrideInSettings) {
		return newMessage(msgFutureState, s.settingsURI()).about("#/Boot")
	}
	return s.setOverride(value)
}

// setFutureBoot sets the boot override by way of the settings resource. The next
// reset is when an override counts anyway, so it is kept where all are. A boot order is
// pending until then, on a BMC that takes one there.
func setFutureBoot(v view, value any) *message {
	s := v.server()
	if order, only := sentOrder(value); only && s.ordersLater() {
		return s.setBootOrder(order, s.setNextOrder)
	}
	return s.setOverride(value)
}

func (s resource) settingsURI() string { return s.URI() + "/" + s.rack().kind.boot.settings }

func (s resource) setOverride(value any) *message {
	sent, ok := value.(object)
	if !ok {
		return newMessage(msgPropertyType, string(mustJSON(value)), "Boot").about("#/Boot")
	}
	s.mu.Lock()
	now := s.override
	s.mu.Unlock()
	next, problem := s.nextOverride(now, sent)
	if problem != nil || s.faults.has(FaultOverrideNotKept) {
		return problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing()
	s.override = next
	s.note("boot override " + next.Enabled + " " + next.Target)
	s.keep()
	s.machine.Reordered()
	return nil
}

func getSettings(v view) object {
	s := v.server()
	boot := s.bootObject()
	delete(boot, "BootOrder")
	delete(boot, "BootOptions")
	if s.ordersLater() {
		s.mu.Lock()
		shown := s.shown()
		boot["BootOrder"] = bootReferences(shown.startsWith())
		s.mu.Unlock()
	}
	return object{"Id": v.bmc.rack.kind.boot.settings, "Name": string(s.name) + " after the next reset", "Boot": boot}
}

package sim

import "slices"

// The references of the boot options.
const (
	diskOption    = "Boot0001"
	networkOption = "Boot0002"
)

// bootReferences are the references in the order in which the firmware tries them.
func bootReferences(networkFirst bool) []string {
	if networkFirst {
		return []string{networkOption, diskOption}
	}
	return []string{diskOption, networkOption}
}

func getBootOption(v view) object {
	name, path := "Hard Drive 1", "HD(1,GPT,2f0cb2e5)"
	if v.id() == networkOption {
		name, path = "Network Card 1 IPv4", "MAC("+v.server().MAC(0)+")/IPv4(0.0.0.0)"
	}
	return object{
		"Id": v.id(), "Name": v.id(), "BootOptionReference": v.id(), "DisplayName": name, "UefiDevicePath": path,
		"BootOptionEnabled": v.id() != diskOption || v.server().bootsDisk(),
	}
}

// enableBootOption switches the disk's boot option on. It takes nothing else: neither is switched off.
func enableBootOption(v view, value any) *message {
	if on, ok := value.(bool); !ok || !on {
		return newMessage(msgPropertyValue, string(mustJSON(value)), "BootOptionEnabled").about("#/BootOptionEnabled")
	}
	if v.id() == diskOption {
		v.server().faults.remove(FaultDiskOptionOff)
	}
	return nil
}

func (s *mainboard) bootsDisk() bool { return !s.faults.has(FaultDiskOptionOff) }

// sentOrder returns the boot order of a Boot object that sets nothing else.
func sentOrder(value any) (order any, only bool) {
	sent, _ := value.(object)
	return sent["BootOrder"], sent["BootOrder"] != nil && len(sent) == 1
}

// setBootOrder has set take over a persistent boot order. Each option has to be there once.
func (s resource) setBootOrder(value any, set func(networkFirst bool)) *message {
	if s.rack().kind.boot.order == orderNone {
		return newMessage(msgPropertyUnknown, "BootOrder").about("#/Boot/BootOrder")
	}
	sent, _ := value.([]any)
	for _, first := range []bool{false, true} {
		if !slices.EqualFunc(bootReferences(first), sent, func(want string, got any) bool { return got == want }) {
			continue
		}
		if !s.faults.has(FaultBootOrderNotKept) {
			s.mu.Lock()
			s.changing()
			s.mu.Unlock()
			set(first)
		}
		return nil
	}
	return newMessage(msgPropertyValue, string(mustJSON(value)), "BootOrder").about("#/Boot/BootOrder")
}

// ordersLater reports whether the BMC takes a boot order in the settings object alone, for the
// next start.
func (s resource) ordersLater() bool {
	return s.rack().kind.boot.order == orderLater || s.faults.has(FaultBootOrderInSettings)
}

// setNextOrder has the next start put the network before the disk, or behind it.
func (s resource) setNextOrder(networkFirst bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextFirst = &networkFirst
	s.machine.Reordered()
}

// startsWith reports whether the network comes before the disk once the firmware has started;
// the caller holds mu.
func (s *mainboard) startsWith() bool { return s.written().startsWith() }

func (w written) startsWith() bool {
	if w.nextFirst != nil {
		return *w.nextFirst
	}
	return w.networkFirst
}

// NetworkFirst reports whether the network comes before the disk in the persistent boot order.
func (s *Server) NetworkFirst() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.networkFirst
}

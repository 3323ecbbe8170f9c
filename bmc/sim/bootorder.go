package sim

import "slices"

// bootReferences are the references of the boot options, in the order in which the firmware
// tries them: Boot0001 is the disk, Boot0002 the network.
func bootReferences(networkFirst bool) []string {
	if networkFirst {
		return []string{"Boot0002", "Boot0001"}
	}
	return []string{"Boot0001", "Boot0002"}
}

func getBootOption(v view) object {
	name, path := "Hard Drive 1", "HD(1,GPT,2f0cb2e5)"
	if v.id() == "Boot0002" {
		name, path = "Network Card 1 IPv4", "MAC("+v.server().MAC(0)+")/IPv4(0.0.0.0)"
	}
	return object{
		"Id": v.id(), "Name": v.id(), "BootOptionReference": v.id(), "DisplayName": name, "UefiDevicePath": path,
		"BootOptionEnabled": true,
	}
}

// sentOrder returns the boot order of a Boot object that sets nothing else.
func sentOrder(value any) (order any, only bool) {
	sent, _ := value.(object)
	return sent["BootOrder"], sent["BootOrder"] != nil && len(sent) == 1
}

// setBootOrder has set take over a persistent boot order. Each option has to be there once.
func (s *Server) setBootOrder(value any, set func(networkFirst bool)) *message {
	sent, _ := value.([]any)
	for _, first := range []bool{false, true} {
		if !slices.EqualFunc(bootReferences(first), sent, func(want string, got any) bool { return got == want }) {
			continue
		}
		if !s.faults.has(FaultBootOrderNotKept) {
			set(first)
		}
		return nil
	}
	return newMessage(msgPropertyValue, string(mustJSON(value)), "BootOrder").about("#/Boot/BootOrder")
}

// ordersLater reports whether the BMC takes a boot order in the settings object alone, for the
// next start.
func (s *Server) ordersLater() bool {
	return s.rack().kind.ordersLater || s.faults.has(FaultBootOrderInSettings)
}

// setNextOrder has the next start put the network before the disk, or behind it.
func (s *Server) setNextOrder(networkFirst bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextFirst = &networkFirst
	s.machine.Reordered()
}

// startsWith reports whether the network comes before the disk once the firmware has started;
// the caller holds mu.
func (s *Server) startsWith() bool {
	if s.nextFirst != nil {
		return *s.nextFirst
	}
	return s.networkFirst
}

// NetworkFirst reports whether the network comes before the disk in the persistent boot order.
func (s *Server) NetworkFirst() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.networkFirst
}

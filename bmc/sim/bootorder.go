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

// setBootOrder sets the persistent boot order. Each option has to be there once.
func (s *Server) setBootOrder(value any) *message {
	sent, _ := value.([]any)
	for _, first := range []bool{false, true} {
		if !slices.EqualFunc(bootReferences(first), sent, func(want string, got any) bool { return got == want }) {
			continue
		}
		if !s.faults.has(FaultBootOrderNotKept) {
			s.SetNetworkFirst(first)
		}
		return nil
	}
	return newMessage(msgPropertyValue, string(mustJSON(value)), "BootOrder").about("#/Boot/BootOrder")
}

// NetworkFirst reports whether the network comes before the disk in the persistent boot order.
func (s *Server) NetworkFirst() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.networkFirst
}

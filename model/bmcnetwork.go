package model

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// BMCNetwork is a network whose addresses BMCs may have.
type BMCNetwork struct {
	Prefix netip.Prefix `json:"prefix"`
	// Plain lets passwords be sent there by http, for everybody on the way to read.
	Plain bool `json:"plain"`
}

// UnmarshalText implements encoding.TextUnmarshaler: a network is written as its
// prefix alone, unless more is to be said of it.
func (n *BMCNetwork) UnmarshalText(text []byte) error {
	p, err := ParseNetwork(string(text))
	if err != nil {
		return err
	}
	*n = BMCNetwork{Prefix: p}
	return nil
}

// ParseNetwork parses a prefix that has no bits set behind its length.
func ParseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("found %s, want a network such as 10.0.0.0/16 or fd00:1::/64", show(s))
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("found %s, which has bits set behind its length: write %s", show(s), p.Masked())
	case p.Addr().Is4In6():
		return netip.Prefix{}, errors.New("an IPv4 network is written as one, such as 10.0.0.0/16")
	}
	return p, nil
}

// BMCNetworks are all networks whose addresses BMCs may have. None of them means any
// address but those that are set aside, see ReserveOf.
type BMCNetworks []BMCNetwork

// Of returns the smallest network that addr lies in.
func (n BMCNetworks) Of(addr netip.Addr) (BMCNetwork, bool) {
	var found BMCNetwork
	addr = addr.Unmap().WithZone("")
	for _, network := range n {
		if network.names(addr) && (!found.Prefix.IsValid() || network.Prefix.Bits() > found.Prefix.Bits()) {
			found = network
		}
	}
	return found, found.Prefix.IsValid()
}

// names reports whether addr is meant by the network. A large network does not mean
// the addresses in it that are set aside: 0.0.0.0/0 is no leave for 127.0.0.1.
func (n BMCNetwork) names(addr netip.Addr) bool {
	reserve := ReserveOf(addr)
	return n.Prefix.Contains(addr) && reserve != ReserveNobody && (reserve == ReserveNone || ReserveOf(n.Prefix.Addr()) == reserve)
}

// Refuse says why nothing may be sent to a BMC at addr by scheme, and what to write
// for it to be; nil = it may.
func (n BMCNetworks) Refuse(addr netip.Addr, scheme string) error {
	addr = addr.Unmap().WithZone("")
	network, named := n.Of(addr)
	reserve := ReserveOf(addr)
	switch {
	case reserve == ReserveNobody:
		return fmt.Errorf("%s is %s: correct it", addr, reserve)
	case !named && len(n) > 0:
		return fmt.Errorf("%s is in none of bmc.networks, so nothing is sent there: correct the address, or %s", addr, n.line(addr, scheme))
	case !named && reserve != ReserveNone:
		return fmt.Errorf("%s is %s, so nothing is sent there unless it is named: correct the address, or %s", addr, reserve, n.line(addr, scheme))
	case scheme == "http" && !network.Plain:
		return fmt.Errorf("http shows the password to everybody on the way to %s: set scheme https, or %s", addr, n.line(addr, scheme))
	}
	return nil
}

// line says what to write for an address to be let in, and nothing else to change.
func (n BMCNetworks) line(addr netip.Addr, scheme string) string {
	entry := netip.PrefixFrom(addr, addr.BitLen()).String()
	if strings.HasPrefix(entry, "::") {
		entry = "0" + entry // as YAML has no text that begins with a colon unless it is quoted
	}
	if scheme == "http" {
		entry = fmt.Sprintf("{prefix: %s, plain: true}", entry)
	}
	if len(n) == 0 {
		return fmt.Sprintf(`write bmc.networks: [0.0.0.0/0, 0::/0, %s] in Ingot's configuration`, entry)
	}
	return fmt.Sprintf("add %s to bmc.networks in Ingot's configuration", entry)
}

package routeradvert

import (
	"fmt"
	"net/netip"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

// packet is a message of the Neighbor Discovery Protocol as it was received.
type packet struct {
	data     []byte // of ICMPv6
	from     netip.Addr
	hopLimit int
}

// message returns what p says, if it is a router solicitation or advertisement that RFC 4861 §6.1
// does not have us discard: what comes from another link has a smaller hop limit.
func (p packet) message() (ndp.Message, bool) {
	if p.hopLimit != ndp.HopLimit || len(p.data) < 2 || p.data[1] != 0 {
		return nil, false
	}
	m, err := ndp.ParseMessage(p.data)
	if err != nil {
		return nil, false
	}
	switch m := m.(type) {
	case *ndp.RouterSolicitation:
		return m, !p.from.IsUnspecified() || !hasSource(m.Options)
	case *ndp.RouterAdvertisement:
		return m, p.from.IsLinkLocalUnicast()
	}
	return nil, false
}

// hasSource reports whether options name the sender's link-layer address.
func hasSource(options []ndp.Option) bool {
	for _, o := range options {
		if l, ok := o.(*ndp.LinkLayerAddress); ok && l.Direction == ndp.Source {
			return true
		}
	}
	return false
}

// contradiction returns in what another router says otherwise than we do, "" if in nothing: RFC 4861
// §6.2.7. What only one of us says is no contradiction.
func contradiction(ours, theirs *ndp.RouterAdvertisement) string {
	switch {
	case ours.ManagedConfiguration != theirs.ManagedConfiguration:
		return fmt.Sprintf("managed: %t", theirs.ManagedConfiguration)
	case ours.OtherConfiguration != theirs.OtherConfiguration && !ours.ManagedConfiguration: // which M makes redundant
		return fmt.Sprintf("otherConfig: %t", theirs.OtherConfiguration)
	}
	for _, o := range ours.Options {
		for _, t := range theirs.Options {
			if found := optionContradiction(o, t); found != "" {
				return found
			}
		}
	}
	return ""
}

// optionContradiction returns in what an option contradicts one of ours.
func optionContradiction(ours, theirs ndp.Option) string {
	switch o := ours.(type) {
	case *ndp.MTU:
		if t, ok := theirs.(*ndp.MTU); ok && t.MTU != o.MTU {
			return fmt.Sprintf("mtu: %d", t.MTU)
		}
	case *ndp.PrefixInformation:
		t, ok := theirs.(*ndp.PrefixInformation)
		if !ok || t.Prefix != o.Prefix || t.PrefixLength != o.PrefixLength || *t == *o {
			return ""
		}
		return fmt.Sprintf("prefix %s/%d: onLink %t, autonomous %t, validLifetime %s, preferredLifetime %s",
			t.Prefix, t.PrefixLength, t.OnLink, t.AutonomousAddressConfiguration, t.ValidLifetime, t.PreferredLifetime)
	}
	return ""
}

// filter lets solicitations and advertisements pass.
func filter() *ipv6.ICMPFilter {
	var f ipv6.ICMPFilter
	f.SetAll(true)
	f.Accept(ipv6.ICMPTypeRouterSolicitation)
	f.Accept(ipv6.ICMPTypeRouterAdvertisement)
	return &f
}

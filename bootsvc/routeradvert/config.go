package routeradvert

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/mdlayher/ndp"
)

// Config is what machines on a link are told.
type Config struct {
	// Managed has machines get addresses by DHCPv6 (the flag M), OtherConfig other settings
	// alone (O): RFC 4861 §4.2.
	Managed     bool `json:"managed"`
	OtherConfig bool `json:"otherConfig"`
	// RouterLifetime is for how long this machine is the default router of the machines that hear it; 0 =
	// it is no router.
	RouterLifetime time.Duration `json:"routerLifetime"`
	// Interval is the longest time between two advertisements; 10m when 0.
	Interval time.Duration `json:"interval"`
	MTU      uint32        `json:"mtu"` // of the link; 0 = it is not told
	Prefixes []Prefix      `json:"prefixes"`
	DNS      []netip.Addr  `json:"dns"`     // RFC 8106 §5.1
	Domains  []string      `json:"domains"` // that names are searched in, RFC 8106 §5.2
}

// Prefix is a prefix of a link: RFC 4861 §4.6.2.
type Prefix struct {
	Prefix netip.Prefix `json:"prefix"`
	// OnLink: machines reach its addresses without a router.
	OnLink bool `json:"onLink"`
	// Autonomous: machines make themselves an address of it (SLAAC, RFC 4862).
	Autonomous bool `json:"autonomous"`
	// ValidLifetime and PreferredLifetime are 30 and 7 days when 0.
	ValidLifetime     time.Duration `json:"validLifetime"`
	PreferredLifetime time.Duration `json:"preferredLifetime"`
}

// What is told where the configuration does not say: RFC 4861 §6.2.1.
const (
	defaultInterval  = 10 * time.Minute
	defaultValid     = 30 * 24 * time.Hour
	defaultPreferred = 7 * 24 * time.Hour
)

// Bounds of what is configured. Times are those of RFC 4861 §6.2.1.
const (
	minInterval = 4 * time.Second
	maxInterval = 30 * time.Minute
	maxRouter   = 150 * time.Minute
	maxLifetime = 0xfffffffe * time.Second // one more means for ever
	minMTU      = 1280                     // RFC 8200 §5
	maxMTU      = 65535
	maxPrefixes = 16
	maxServers  = 8
	// maxSize is what fits into any packet: an advertisement must not be fragmented (RFC 6980).
	maxSize = minMTU - 40
)

// interval returns the longest time between two advertisements.
func (c Config) interval() time.Duration {
	if c.Interval == 0 {
		return defaultInterval
	}
	return c.Interval
}

// lifetimes returns for how long an address of p is valid, and preferred.
func (p Prefix) lifetimes() (valid, preferred time.Duration) {
	valid, preferred = p.ValidLifetime, p.PreferredLifetime
	if valid == 0 {
		valid = defaultValid
	}
	if preferred == 0 {
		preferred = min(defaultPreferred, valid)
	}
	return valid, preferred
}

// Message returns what c tells of a link on which this machine has a MAC address.
func (c Config) Message(mac net.HardwareAddr) *ndp.RouterAdvertisement {
	m := &ndp.RouterAdvertisement{
		ManagedConfiguration: c.Managed, OtherConfiguration: c.OtherConfig, RouterLifetime: c.RouterLifetime,
		RouterSelectionPreference: ndp.Medium,
	}
	if len(mac) == 6 {
		m.Options = append(m.Options, &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac})
	}
	if c.MTU > 0 {
		m.Options = append(m.Options, ndp.NewMTU(c.MTU))
	}
	for _, p := range c.Prefixes {
		valid, preferred := p.lifetimes()
		m.Options = append(m.Options, &ndp.PrefixInformation{
			Prefix: p.Prefix.Addr(), PrefixLength: uint8(p.Prefix.Bits()), OnLink: p.OnLink, AutonomousAddressConfiguration: p.Autonomous,
			ValidLifetime: valid, PreferredLifetime: preferred,
		})
	}
	// Three are sent within that time at least, RFC 8106 §5.1.
	known := 3 * c.interval()
	if len(c.DNS) > 0 {
		m.Options = append(m.Options, &ndp.RecursiveDNSServer{Lifetime: known, Servers: c.DNS})
	}
	if len(c.Domains) > 0 {
		list := &ndp.DNSSearchList{Lifetime: known}
		for _, d := range c.Domains {
			list.DomainNames = append(list.DomainNames, strings.TrimSuffix(d, "."))
		}
		m.Options = append(m.Options, list)
	}
	return m
}

// Check calls say with what is wrong with c: the path below c, and what is allowed.
// validDomain reports whether a name is one of DNS.
func (c Config) Check(validDomain func(string) bool, say func(path, format string, args ...any)) {
	wrong := false
	note := func(path, format string, args ...any) {
		wrong = true
		say(path, format, args...)
	}
	c.checkTimes(note)
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		note(".mtu", "%d must be from %d to %d, or be left out", c.MTU, minMTU, maxMTU)
	}
	if len(c.Prefixes) > maxPrefixes {
		note(".prefixes", "there are %d: at most %d are allowed", len(c.Prefixes), maxPrefixes)
		return
	}
	for i, p := range c.Prefixes {
		p.check(c.Prefixes[:i], func(path, format string, args ...any) { note(fmt.Sprintf(".prefixes[%d]%s", i, path), format, args...) })
	}
	c.checkDNS(validDomain, note)
	if wrong {
		return
	}
	if message, err := ndp.MarshalMessage(c.Message(make(net.HardwareAddr, 6))); err != nil || len(message) > maxSize {
		say("", "it does not fit into one packet: an advertisement may have %d bytes; name fewer prefixes or domains", maxSize)
	}
}

// checkTimes checks how often c is told, and for how long it counts.
func (c Config) checkTimes(say func(path, format string, args ...any)) {
	r := c.RouterLifetime
	switch i := c.interval(); {
	case i < minInterval || i > maxInterval:
		say(".interval", "%s must be from %s to %s", i, minInterval, maxInterval)
	case r != 0 && (r < i || r > maxRouter):
		say(".routerLifetime", "%s must be 0, where this machine is no router, or from the interval, %s, to %s", r, i, maxRouter)
	}
}

// checkDNS checks what c says of DNS.
func (c Config) checkDNS(validDomain func(string) bool, say func(path, format string, args ...any)) {
	if len(c.DNS) > maxServers {
		say(".dns", "there are %d: at most %d are allowed", len(c.DNS), maxServers)
	}
	for i, a := range c.DNS {
		if !a.Is6() || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			say(fmt.Sprintf(".dns[%d]", i), "%s must be the IPv6 address of a DNS server", a)
		}
	}
	if len(c.Domains) > maxServers {
		say(".domains", "there are %d: at most %d are allowed", len(c.Domains), maxServers)
	}
	for i, d := range c.Domains {
		if d == "" || !validDomain(d) {
			say(fmt.Sprintf(".domains[%d]", i), "%q must be a DNS name, as rack4.example.com", d)
		}
	}
}

// check checks a prefix, beside those before it.
func (p Prefix) check(before []Prefix, say func(path, format string, args ...any)) {
	a := p.Prefix.Addr()
	if !p.Prefix.IsValid() || !a.Is6() || a.Is4In6() || a.IsMulticast() || a.IsLinkLocalUnicast() || p.Prefix.Masked() != p.Prefix {
		say(".prefix", "%s must be an IPv6 prefix that is not link-local, with no bits set behind its length, as fd00:20::/64", p.Prefix)
		return
	}
	for i, other := range before {
		if other.Prefix == p.Prefix {
			say(".prefix", "%s is that of prefixes[%d] already", p.Prefix, i)
		}
	}
	switch {
	case !p.OnLink && !p.Autonomous:
		say("", "%s has no effect: write onLink: true where machines reach its addresses without a router, autonomous: true where they make themselves one", p.Prefix)
	case p.Autonomous && p.Prefix.Bits() != 64:
		say(".prefix", "%s must be a /64, of which machines make themselves addresses (autonomous)", p.Prefix)
	}
	valid, preferred := p.lifetimes()
	if p.ValidLifetime < 0 || valid > maxLifetime {
		say(".validLifetime", "%s must be from 1s to %s", valid, maxLifetime)
	}
	if p.PreferredLifetime < 0 || preferred > valid {
		say(".preferredLifetime", "%s must not be longer than validLifetime, %s", preferred, valid)
	}
}

package dhcp

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

const (
	minLeaseTime = time.Minute
	maxServers   = 8  // DNS or NTP servers of a subnet: what fits into any packet
	maxName      = 40 // of a network
	maxInterface = 15 // Linux' IFNAMSIZ, less the zero at its end
	maxDomain    = 253
)

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
	labelPattern  = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	prefixPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){0,5}$`)
)

// Problem is something wrong in the configuration.
type Problem struct {
	Path    string // from the list of networks on: [0].subnets[1].range
	Message string // what was found, what is allowed
}

// Check returns what is wrong with networks, in their order.
func Check(networks []Network) []Problem {
	c := &checker{}
	for i, n := range networks {
		c.network(fmt.Sprintf("[%d]", i), n)
	}
	c.clashes(networks)
	c.overlaps(networks)
	return c.problems
}

type checker struct{ problems []Problem }

func (c *checker) say(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (c *checker) network(path string, n Network) {
	if len(n.Name) > maxName || !namePattern.MatchString(n.Name) {
		c.say(path+".name", "%q must be 1 to %d letters, digits and dashes, with no dash at an end", clip(n.Name), maxName)
	}
	c.heard(path, n)
	if !slices.Contains(model.NetworkRoles, n.Role) {
		c.say(path+".role", "%q must be bmc or host", clip(string(n.Role)))
	}
	switch n.Mode {
	case "", ModeServer:
		if len(n.Subnets) == 0 {
			c.say(path+".subnets", "there are none: a network in mode server needs at least one subnet to give addresses from; write mode: proxy if another DHCP server gives them")
		}
	case ModeProxy:
		c.proxy(path, n)
	case ModeOff:
	default:
		c.say(path+".mode", "%q must be server, proxy or off", clip(string(n.Mode)))
	}
	for _, list := range []struct {
		key    string
		values []string
	}{{".macAllow", n.MACAllow}, {".macDeny", n.MACDeny}} {
		for i, p := range list.values {
			if !prefixPattern.MatchString(p) {
				c.say(fmt.Sprintf("%s%s[%d]", path, list.key, i), "%q must be the first 1 to 6 bytes of MAC addresses, in hexadecimal with colons, as a0:36:9f", clip(p))
			}
		}
	}
	for i, r := range n.Relays {
		if _, err := parseRelay(r); err != nil {
			c.say(fmt.Sprintf("%s.relays[%d]", path, i), "%v", err)
		}
	}
	c.options(path+".options", n.Options)
	c.bootURL(path+".bootURL", n.BootURL)
	if _, err := netboot.ParseAddressRule(n.BindTickets); err != nil {
		c.say(path+".bindTickets", "%v", err)
	}
	for i, s := range n.Subnets {
		c.subnet(fmt.Sprintf("%s.subnets[%d]", path, i), n, s)
	}
}

func (c *checker) heard(path string, n Network) {
	switch {
	case n.Interface == "" && n.Listen == "":
		c.say(path, "it names neither interface (for clients and relays on a link) nor listen (for relays only): name one of them")
	case n.Interface != "" && n.Listen != "":
		c.say(path, "it names both interface %q and listen %q: keep one of them", clip(n.Interface), clip(n.Listen))
	case n.Interface != "" && (len(n.Interface) > maxInterface || strings.ContainsAny(n.Interface, "/ \t\n\x00")):
		c.say(path+".interface", "%q is no name of a network interface: 1 to %d characters, without spaces and slashes", clip(n.Interface), maxInterface)
	case n.Listen != "":
		ap, err := parseListen(n.Listen)
		if err != nil {
			c.say(path+".listen", "%v", err)
			return
		}
		for i, s := range n.Subnets {
			if s.CIDR.IsValid() && s.CIDR.Addr().Is4() != ap.Addr().Is4() {
				c.say(fmt.Sprintf("%s.subnets[%d].cidr", path, i), "%s is of the other family than listen %s: relays of that family cannot reach it; make it a network of its own", s.CIDR, n.Listen)
			}
		}
	}
}

// parseListen reads 192.0.2.1, 192.0.2.1:6767, fd00::1 or [fd00::1]:6767.
func parseListen(s string) (netip.AddrPort, error) {
	bad := func(why string) (netip.AddrPort, error) {
		return netip.AddrPort{}, fmt.Errorf("%q %s: it must be an address of this machine that relays send to, with or without port, as 192.0.2.1, 192.0.2.1:6767 or [fd00::1]:6767", clip(s), why)
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
		if err != nil {
			return bad("is no address")
		}
		port := uint16(port4Server)
		if a.Is6() {
			port = port6Server
		}
		ap = netip.AddrPortFrom(a, port)
	}
	switch a := ap.Addr(); {
	case a.IsUnspecified():
		return bad("stands for all addresses, but answers name one")
	case a.IsMulticast(), a.Is4In6(), a.Zone() != "":
		return bad("is not a plain unicast address")
	}
	return ap, nil
}

func parseRelay(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsMulticast() {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil || p.Addr().Is4In6() || p.Addr().IsMulticast():
		return netip.Prefix{}, fmt.Errorf("%q must be the address of a relay, or a prefix of several, as 192.0.2.1, fd00::1 or 10.0.0.0/8", clip(s))
	case p.Masked() != p:
		return netip.Prefix{}, fmt.Errorf("%q has bits set behind its length: write %s", clip(s), p.Masked())
	}
	return p, nil
}

func (c *checker) proxy(path string, n Network) {
	if n.Role == model.RoleBMC {
		c.say(path+".mode", "proxy goes with role host only: BMCs boot nothing, and their leases are not seen beside another DHCP server")
	}
	if n.Listen != "" {
		c.say(path+".listen", "mode proxy needs an interface: clients broadcast, and no relay tells them of a second server")
	}
	if len(n.Options) > 0 {
		c.say(path+".options", "in mode proxy another DHCP server gives the options; leave them out")
	}
	for i, s := range n.Subnets {
		at := fmt.Sprintf("%s.subnets[%d]", path, i)
		if len(s.Options) > 0 {
			c.say(at+".options", "in mode proxy another DHCP server gives the options; leave them out")
		}
		if all := s.Ranges; len(all) > 0 {
			c.say(at+".ranges", "%s: in mode proxy another DHCP server gives the addresses; leave the range out", all[0])
		}
	}
}

// options checks options of DHCPv4.
func (c *checker) options(path string, all ClientOptions) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := (model.DHCPOptions{}).Set(name, string(all[name])); err != nil {
			c.say(path+"."+name, "%v", err)
			continue
		}
		named := model.DHCPOptionName(name)
		if _, twice := all[named]; twice {
			c.say(path+"."+name, "option %s is set by %s, too: keep one of them", name, named)
		}
	}
}

// bootURL checks the address of the boot service.
func (c *checker) bootURL(path, s string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		c.say(path, "%q must be an absolute http or https URL, as http://192.0.2.1:8082", clip(s))
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		c.say(path, "%q must have neither user, query nor fragment: paths are added to it", clip(u.Redacted()))
	case len(s) > 100:
		c.say(path, "%q is %d bytes long: 100 are allowed, so that boot files fit into a DHCP packet", clip(s), len(s))
	}
}

func (c *checker) subnet(path string, n Network, s Subnet) {
	if !s.CIDR.IsValid() {
		c.say(path+".cidr", "it is missing: write the subnet as 192.0.2.0/24")
		return
	}
	a := s.CIDR.Addr()
	switch {
	case a.Is4In6(), a.IsMulticast(), a.IsLoopback() && n.Listen == "", a.IsLinkLocalUnicast():
		c.say(path+".cidr", "%s is no subnet that clients can have addresses of", s.CIDR)
	case s.CIDR.Masked() != s.CIDR:
		c.say(path+".cidr", "%s has bits set behind its length: write %s", s.CIDR, s.CIDR.Masked())
	case a.Is4() && s.CIDR.Bits() < 8, a.Is6() && s.CIDR.Bits() < 16:
		c.say(path+".cidr", "%s is too large: an IPv4 subnet is at least a /8, an IPv6 subnet at least a /16", s.CIDR)
	}
	c.sameFamily(path, s)
	c.ranges(path, s)
	c.derive(path, s)
	c.delegate(path+".delegate", s)
	c.options(path+".options", s.Options)
	if len(s.Options) > 0 && a.Is6() {
		c.say(path+".options", "options are those of DHCPv4, and %s is IPv6; leave them out", s.CIDR)
	}
	if s.LeaseTime != 0 && (s.LeaseTime < minLeaseTime || s.LeaseTime > lease.MaxTime) {
		c.say(path+".leaseTime", "%s must be from 1m to 720h", s.LeaseTime)
	}
	if !validDomain(s.Domain) {
		c.say(path+".domain", "%q must be a DNS name, as rack4.example.com", clip(s.Domain))
	}
}

// sameFamily checks the addresses of routers and servers of a subnet.
func (c *checker) sameFamily(path string, s Subnet) {
	if g := s.Gateway; g.IsValid() {
		switch {
		case s.CIDR.Addr().Is6():
			c.say(path+".gateway", "%s: IPv6 clients learn their router from its advertisements; leave the gateway out", g)
		case !g.Is4():
			c.say(path+".gateway", "%s must be an IPv4 address, as %s is", g, s.CIDR)
		case !s.CIDR.Contains(g):
			c.say(path+".gateway", "%s must lie in %s, or clients cannot reach it", g, s.CIDR)
		case s.CIDR.Bits() < 31 && (g == s.CIDR.Addr() || g == lease.Last(s.CIDR)):
			c.say(path+".gateway", "%s is the network or broadcast address of %s", g, s.CIDR)
		}
	}
	for _, list := range []struct {
		key    string
		values []netip.Addr
	}{{".dns", s.DNS}, {".ntp", s.NTP}} {
		if len(list.values) > maxServers {
			c.say(path+list.key, "there are %d: at most %d are allowed, so that they fit into any packet", len(list.values), maxServers)
		}
		for i, a := range list.values {
			if !a.IsValid() || a.Is4() != s.CIDR.Addr().Is4() || a.IsUnspecified() || a.Zone() != "" {
				c.say(fmt.Sprintf("%s%s[%d]", path, list.key, i), "%s must be an address of the same family as %s", a, s.CIDR)
			}
		}
	}
}

// maxRanges bounds the ranges, and what is excluded, of a subnet.
const maxRanges = 256

func (c *checker) ranges(path string, s Subnet) {
	before := len(c.problems)
	for _, list := range []struct {
		key string
		all []lease.Range
	}{{".ranges", s.Ranges}, {".exclude", s.Exclude}} {
		if len(list.all) > maxRanges {
			c.say(path+list.key, "there are %d: at most %d are allowed", len(list.all), maxRanges)
			return
		}
		for i, r := range list.all {
			c.addressRange(fmt.Sprintf("%s%s[%d]", path, list.key, i), s, r)
		}
	}
	if len(c.problems) > before {
		return
	}
	if a, b, overlap := lease.Overlap(s.Ranges); overlap {
		c.say(path+".ranges", "%s and %s overlap: make them one", a, b)
		return
	}
	for i, x := range s.Exclude {
		if !slices.ContainsFunc(s.Ranges, func(r lease.Range) bool { return r.Contains(x.First) || x.Contains(r.First) }) {
			c.say(fmt.Sprintf("%s.exclude[%d]", path, i), "%s lies in none of the subnet's ranges, so it excludes nothing; leave it out", x)
		}
	}
	left := lease.Without(s.Ranges, s.Exclude)
	if len(left) == 0 && len(s.Ranges) > 0 {
		c.say(path+".exclude", "it leaves nothing of the subnet's ranges; leave both out for reservations only")
	}
	if i := slices.IndexFunc(left, func(r lease.Range) bool { return s.Gateway.IsValid() && r.Contains(s.Gateway) }); i >= 0 {
		c.say(path+".ranges", "%s must not hold the gateway %s", left[i], s.Gateway)
	}
}

func (c *checker) addressRange(path string, s Subnet, r lease.Range) {
	switch {
	case r.IsZero():
		c.say(path, "it is empty: write it as 192.0.2.10-192.0.2.99")
	case r.First.Is4() != s.CIDR.Addr().Is4(), r.Last.Is4() != s.CIDR.Addr().Is4():
		c.say(path, "%s must be addresses of the same family as %s", r, s.CIDR)
	case !s.CIDR.Contains(r.First) || !s.CIDR.Contains(r.Last):
		c.say(path, "%s must lie within %s, which goes from %s to %s", r, s.CIDR, s.CIDR.Addr(), lease.Last(s.CIDR))
	case r.Last.Less(r.First):
		c.say(path, "%s is the wrong way round: write %s-%s", r, r.Last, r.First)
	}
}

func (c *checker) derive(path string, s Subnet) {
	switch {
	case s.Derive == DeriveNone:
		return
	case s.Derive != DeriveStateless && s.Derive != DeriveOnmetal:
		c.say(path+".derive", "%q must be stateless or onmetal, or be left out", clip(string(s.Derive)))
		return
	case s.CIDR.Addr().Is4():
		c.say(path+".derive", "%s makes IPv6 addresses only, and %s is IPv4; leave it out", s.Derive, s.CIDR)
	case s.Derive == DeriveStateless && s.CIDR.Bits() > 80:
		c.say(path+".derive", "stateless needs the last 48 bits for the MAC address: %s must be a /80 or larger", s.CIDR)
	}
	if all := s.Ranges; len(all) > 0 {
		c.say(path+".ranges", "%s: addresses are derived (derive: %s), so there is nothing to choose; keep one of the two", all[0], s.Derive)
	}
}

func (c *checker) delegate(path string, s Subnet) {
	d := s.Delegate
	switch {
	case d == lease.Delegation{}:
	case s.CIDR.Addr().Is4():
		c.say(path, "prefixes are delegated by IPv6 only, and %s is IPv4; leave it out", s.CIDR)
	case d.Bits < 1 || d.Bits > 127:
		c.say(path+".bits", "%d must be the length of the delegated prefixes, from 1 to 127", d.Bits)
	case !d.From.IsValid() && s.Derive != DeriveOnmetal:
		c.say(path+".from", "it is missing: name the prefix to delegate from, as fd00:1::/48 (only derive: onmetal does without)")
	case !d.From.IsValid():
	case d.From.Addr().Is4() || d.From.Masked() != d.From:
		c.say(path+".from", "%s must be an IPv6 prefix with no bits set behind its length", d.From)
	case d.From.Bits() > d.Bits:
		c.say(path+".bits", "%d is shorter than %s, which prefixes are delegated from", d.Bits, d.From)
	case d.From.Overlaps(s.CIDR):
		c.say(path+".from", "%s overlaps %s, where clients have their addresses", d.From, s.CIDR)
	}
}

// clashes checks what no two networks may share.
func (c *checker) clashes(networks []Network) {
	names, interfaces, listens := map[string]int{}, map[string]int{}, map[string]int{}
	duplicate := func(path string, seen map[string]int, value string, i int, advice string) {
		if value == "" {
			return
		}
		if first, ok := seen[value]; ok {
			c.say(path, "%q is that of network [%d] already: %s", clip(value), first, advice)
			return
		}
		seen[value] = i
	}
	for i, n := range networks {
		at := "[" + strconv.Itoa(i) + "]"
		duplicate(at+".name", names, n.Name, i, "give each network a name of its own")
		if !n.Serves() {
			continue
		}
		duplicate(at+".interface", interfaces, n.Interface, i, "put all subnets of an interface into one network")
		if ap, err := parseListen(n.Listen); err == nil {
			duplicate(at+".listen", listens, ap.String(), i, "put all subnets of an address into one network")
		}
	}
	if len(interfaces) == 0 {
		return
	}
	for i, n := range networks {
		if ap, err := parseListen(n.Listen); err == nil && n.Serves() && (ap.Port() == port4Server && ap.Addr().Is4() || ap.Port() == port6Server && ap.Addr().Is6()) {
			c.say(fmt.Sprintf("[%d].listen", i), "port %d of %s cannot be listened on beside networks with an interface, which take that port: name the interface that relays arrive on instead", ap.Port(), ap.Addr())
		}
	}
}

// overlaps checks that no address is given by two subnets.
func (c *checker) overlaps(networks []Network) {
	type block struct {
		path   string
		prefix netip.Prefix
	}
	var blocks []block
	for i, n := range networks {
		if !n.Serves() {
			continue
		}
		for j, s := range n.Subnets {
			at := fmt.Sprintf("[%d].subnets[%d]", i, j)
			blocks = append(blocks, block{at + ".cidr", s.CIDR}, block{at + ".delegate.from", s.Delegate.From})
		}
	}
	for i, b := range blocks {
		for _, a := range blocks[:i] {
			sameSubnet := strings.TrimSuffix(a.path, ".cidr") == strings.TrimSuffix(b.path, ".delegate.from")
			if a.prefix.IsValid() && b.prefix.IsValid() && a.prefix.Overlaps(b.prefix) && !sameSubnet {
				c.say(b.path, "%s overlaps %s of dhcp%s: an address must belong to one subnet", b.prefix, a.prefix, a.path)
			}
		}
	}
}

// validDomain reports whether s is a DNS name, or empty.
func validDomain(s string) bool {
	if s == "" {
		return true
	}
	s = strings.TrimSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if !labelPattern.MatchString(label) {
			return false
		}
	}
	return len(s) <= maxDomain
}

// clip cuts s to what fits into a message.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

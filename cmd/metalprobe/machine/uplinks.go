package machine

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
)

// Metrics of routes: those of the card through which Ingot was reached are preferred,
// then those of the other cards in their order.
const (
	chosenMetric = 16
	otherMetric  = 1024
)

// maxNameservers is how many of resolv.conf are used (resolv.conf(5), MAXNS).
const maxNameservers = 3

// uplink is an address on a card through which Ingot may be reached.
type uplink struct {
	nic       string
	index     int
	family    int // 4 or 6
	address   netip.Prefix
	url       string // the boot file that came with it; may hold a token
	preferred bool
}

func (u uplink) key() uplinkKey { return uplinkKey{u.nic, u.family} }

type uplinkKey struct {
	nic    string
	family int
}

// uplinks are all present uplinks. They are safe for concurrent use.
type uplinks struct {
	resolvConf string // path of the file that lists DNS servers

	mu      sync.Mutex
	known   map[uplinkKey]configured
	chosen  uplinkKey
	changed chan struct{} // closed when known changes
}

// configured is an uplink with the routes and DNS servers that came with its address.
type configured struct {
	uplink
	routes []hop
	dns    []netip.Addr
}

func newUplinks(resolvConf string) *uplinks {
	return &uplinks{resolvConf: resolvConf, known: make(map[uplinkKey]configured), changed: make(chan struct{})}
}

// add notes an uplink in place of the card's previous one of its family, and reports
// whether it differs from that.
func (s *uplinks) add(u uplink, routes []hop, dns []netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.known[u.key()].uplink != u
	s.known[u.key()] = configured{u, routes, dns}
	if changed {
		s.publish()
	}
	return changed
}

func (s *uplinks) remove(nic string, family int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, uplinkKey{nic, family})
	s.publish()
}

// publish wakes everything that waits for changes, and writes resolv.conf. A failure to
// write it shows when a name is not found.
func (s *uplinks) publish() {
	close(s.changed)
	s.changed = make(chan struct{})
	_ = os.WriteFile(s.resolvConf, s.nameservers(), 0o644)
}

// nameservers returns resolv.conf, with the servers of the chosen uplink first.
func (s *uplinks) nameservers() []byte {
	servers := slices.Clone(s.known[s.chosen].dns)
	for _, u := range s.sorted() {
		servers = append(servers, u.dns...)
	}
	var b bytes.Buffer
	seen := make(map[netip.Addr]bool)
	for _, a := range servers {
		if !seen[a] && len(seen) < maxNameservers {
			seen[a] = true
			fmt.Fprintln(&b, "nameserver", a)
		}
	}
	return b.Bytes()
}

func (s *uplinks) sorted() []configured {
	return slices.SortedFunc(maps.Values(s.known), func(a, b configured) int {
		return 10*(a.index-b.index) + a.family - b.family
	})
}

// list returns the present uplinks, and a channel that is closed when they change.
func (s *uplinks) list() ([]uplink, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []uplink
	for _, c := range s.sorted() {
		list = append(list, c.uplink)
	}
	return list, s.changed
}

func (s *uplinks) route(u uplink) error {
	s.mu.Lock()
	c, chosen := s.known[u.key()], s.chosen == u.key()
	s.mu.Unlock()
	if err := setRoutes(c, otherMetric+c.index); err != nil || !chosen {
		return err
	}
	return setRoutes(c, chosenMetric)
}

// choose makes an uplink the preferred one from now on; the others stay.
func (s *uplinks) choose(u uplink) error {
	s.mu.Lock()
	s.chosen = u.key()
	s.publish()
	s.mu.Unlock()
	if err := s.route(u); err != nil || u.family == 4 {
		return err
	}
	return preferRouters(u)
}

// preferRouters makes the routers on a card the preferred ones for all that is beyond
// the link. The kernel learns the routers of all cards from their advertisements, and
// would take any of them.
func preferRouters(u uplink) error {
	for _, gateway := range routers6(u.nic) {
		if err := setRoute(u.index, netip.PrefixFrom(netip.IPv6Unspecified(), 0), gateway, chosenMetric); err != nil {
			return err
		}
	}
	return nil
}

// setRoutes sets routes in order: the first makes the gateways of the others reachable.
func setRoutes(c configured, metric int) error {
	for _, r := range c.routes {
		if err := setRoute(c.index, r.to, r.gateway, metric); err != nil {
			return err
		}
	}
	return nil
}

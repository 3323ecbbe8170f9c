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

// Metrics of routes: those of the card by which Ingot was reached come first, then
// cards in their order.
const (
	chosenMetric = 16
	otherMetric  = 1024
)

// maxNameservers is how many of resolv.conf are used (resolv.conf(5), MAXNS).
const maxNameservers = 3

// way is an address on a card, by which Ingot may be reached.
type way struct {
	nic       string
	index     int
	family    int // 4 or 6
	address   netip.Prefix
	url       string // the boot file that came with it; may hold a token
	preferred bool
}

func (w way) key() wayKey { return wayKey{w.nic, w.family} }

type wayKey struct {
	nic    string
	family int
}

// ways are the ways there are now. They are safe for concurrent use.
type ways struct {
	resolvConf string // path of the file that names DNS servers

	mu      sync.Mutex
	known   map[wayKey]configured
	chosen  wayKey
	changed chan struct{} // closed when known changes
}

// configured is a way with what came with its address.
type configured struct {
	way
	routes []hop
	dns    []netip.Addr
}

func newWays(resolvConf string) *ways {
	return &ways{resolvConf: resolvConf, known: make(map[wayKey]configured), changed: make(chan struct{})}
}

// add notes a way, in place of the card's former one of its family, and reports
// whether that is news.
func (s *ways) add(w way, routes []hop, dns []netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.known[w.key()].way != w
	s.known[w.key()] = configured{w, routes, dns}
	if news {
		s.tell()
	}
	return news
}

// remove forgets a way that is lost.
func (s *ways) remove(nic string, family int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, wayKey{nic, family})
	s.tell()
}

// tell wakes who waits for changes, and writes resolv.conf. Its failure is seen
// where a name is not found.
func (s *ways) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
	_ = os.WriteFile(s.resolvConf, s.nameservers(), 0o644)
}

// nameservers is resolv.conf, with the servers of the chosen way first.
func (s *ways) nameservers() []byte {
	servers := slices.Clone(s.known[s.chosen].dns)
	for _, w := range s.sorted() {
		servers = append(servers, w.dns...)
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

func (s *ways) sorted() []configured {
	return slices.SortedFunc(maps.Values(s.known), func(a, b configured) int {
		return 10*(a.index-b.index) + a.family - b.family
	})
}

// list returns the ways there are, and a channel that is closed when that changes.
func (s *ways) list() ([]way, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []way
	for _, c := range s.sorted() {
		list = append(list, c.way)
	}
	return list, s.changed
}

// route sets the routes of a way.
func (s *ways) route(w way) error {
	s.mu.Lock()
	c, chosen := s.known[w.key()], s.chosen == w.key()
	s.mu.Unlock()
	if err := setRoutes(c, otherMetric+c.index); err != nil || !chosen {
		return err
	}
	return setRoutes(c, chosenMetric)
}

// choose makes a way the one that is taken from now on; the others stay.
func (s *ways) choose(w way) error {
	s.mu.Lock()
	s.chosen = w.key()
	s.tell()
	s.mu.Unlock()
	if err := s.route(w); err != nil || w.family == 4 {
		return err
	}
	return preferRouters(w)
}

// preferRouters makes the routers on a card the ones for what is beyond the link.
// The kernel learns those of all cards from their advertisements, and takes any.
func preferRouters(w way) error {
	for _, gateway := range routers6(w.nic) {
		if err := setRoute(w.index, netip.PrefixFrom(netip.IPv6Unspecified(), 0), gateway, chosenMetric); err != nil {
			return err
		}
	}
	return nil
}

// setRoutes sets routes in their order: the first makes gateways reachable.
func setRoutes(c configured, metric int) error {
	for _, r := range c.routes {
		if err := setRoute(c.index, r.to, r.gateway, metric); err != nil {
			return err
		}
	}
	return nil
}

package tftp

import (
	"net/netip"

	"ingot/model"
)

const (
	maxEvents = 4096
	maxSeen   = 1024
	maxHeld   = 64 // more than there are boot loaders
)

// sinceTick is what is remembered from one tick to the next. A row of machines, or a client
// with many files, asks for the same within milliseconds.
type sinceTick struct {
	events map[netip.Addr][]model.CardEvent // of each client
	count  int                              // of all of them
	seen   map[sighting]bool                // what Seen was told
	held   map[string][]byte                // files that are in memory, by name
}

// sighting is that a client was sent a file.
type sighting struct {
	client netip.Addr
	name   string
}

// note remembers an event. More than there is room for are left out: so many do not come
// from machines that boot.
func (s *sinceTick) note(client netip.Addr, e model.CardEvent) {
	if s.count == maxEvents {
		return
	}
	if s.events == nil {
		s.events = make(map[netip.Addr][]model.CardEvent)
	}
	s.events[client] = append(s.events[client], e)
	s.count++
}

// sees reports whether a client is sent a file for the first time since the tick.
func (s *sinceTick) sees(client netip.Addr, name string) bool {
	at := sighting{client, name}
	if s.seen[at] {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[sighting]bool)
	}
	if len(s.seen) < maxSeen {
		s.seen[at] = true
	}
	return true
}

func (s *sinceTick) hold(name string, contents []byte) {
	if s.held == nil {
		s.held = make(map[string][]byte)
	}
	if len(s.held) < maxHeld {
		s.held[name] = contents
	}
}

func (s *Server) tell() {
	s.mu.Lock()
	events := s.since.events
	s.since = sinceTick{}
	s.mu.Unlock()
	for client, all := range events {
		s.told(client, all)
	}
}

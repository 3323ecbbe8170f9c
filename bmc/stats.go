package bmc

import "ingot/model"

// Stats counts what was asked of one BMC since its client was made.
type Stats struct {
	Requests    uint64 // sent, logins and repetitions included
	Connections uint64 // opened
	Sessions    uint64 // opened
}

// Stats returns the BMC's counts; they are zero if it was not asked anything.
func (p *Pool) Stats(name model.BMCName) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil {
		return Stats{}
	}
	return Stats{c.counted.requests.Load(), c.counted.connections.Load(), c.counted.sessions.Load()}
}

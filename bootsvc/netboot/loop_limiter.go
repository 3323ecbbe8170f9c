package netboot

import (
	"sync"
	"time"

	"ingot/model"
)

// LoopLimiter keeps machines from going round in circles: firmware that loads iPXE which
// never gets as far as its script, or iPXE that fetches its script and never its
// kernel. It counts the turns that a machine takes with one ticket, and refuses
// the next after Limit of them until Within has passed since the first. It is safe
// for concurrent use.
type LoopLimiter struct {
	Rule
	reached func(*model.Progress) bool // the stage that ends the circle

	mu    sync.Mutex
	turns map[string]turns // by ticket
}

// Rule is how many turns are too many.
type Rule struct {
	Limit  int
	Within time.Duration
	// Turn is how long one turn takes at least: packets that lie closer together are
	// those of one attempt, for firmware asks several times in each.
	Turn time.Duration
}

// turns are those that one machine took.
type turns struct {
	count       int
	first, last time.Time
}

// maxGuarded bounds the machines that are counted at a time.
const maxGuarded = 16384

// NewLoaderLimiter returns the LoopLimiter for what sends machines boot loaders
// (Answer.Loader): not a fourth time within 5 minutes, as long as iPXE has not
// asked for the script.
func NewLoaderLimiter() *LoopLimiter {
	return &LoopLimiter{
		Rule:    Rule{Limit: 3, Within: 5 * time.Minute, Turn: 10 * time.Second},
		reached: func(p *model.Progress) bool { return !p.ScriptAt.IsZero() },
		turns:   make(map[string]turns),
	}
}

// NewScriptLimiter returns the LoopLimiter for what serves iPXE scripts: not a fourth time
// within 3 minutes, as long as the kernel was not fetched.
func NewScriptLimiter() *LoopLimiter {
	return &LoopLimiter{
		Rule:    Rule{Limit: 3, Within: 3 * time.Minute},
		reached: func(p *model.Progress) bool { return !p.KernelAt.IsZero() },
		turns:   make(map[string]turns),
	}
}

// Allow reports whether the machine of o's ticket may take another turn now, and
// counts it. It is asked once for each answer that is about to be sent, offers and
// retransmissions among them.
func (g *LoopLimiter) Allow(o model.TicketHolder, now time.Time) bool {
	if o.Ticket == nil {
		return false
	}
	id := o.Ticket.ID
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := o.Progress; p != nil && p.Ticket == id && g.reached(p) {
		delete(g.turns, id)
		return true
	}
	taken, ok := g.turns[id].next(g.Rule, now)
	if _, known := g.turns[id]; !known && len(g.turns) >= maxGuarded {
		g.forget(now)
	}
	g.turns[id] = taken
	return ok
}

// next returns t after one more turn at now, and whether it may be taken.
func (t turns) next(r Rule, now time.Time) (turns, bool) {
	switch {
	case t.count == 0 || now.Sub(t.first) >= r.Within:
		return turns{1, now, now}, true
	case now.Sub(t.last) < r.Turn:
		return t, true
	case t.count >= r.Limit:
		return t, false
	}
	return turns{t.count + 1, t.first, now}, true
}

// forget makes room: for the machines whose time has passed, or else for the one
// that began first.
func (g *LoopLimiter) forget(now time.Time) {
	oldest := ""
	for id, t := range g.turns {
		if now.Sub(t.first) >= g.Within {
			delete(g.turns, id)
			continue
		}
		if oldest == "" || t.first.Before(g.turns[oldest].first) {
			oldest = id
		}
	}
	if len(g.turns) >= maxGuarded {
		delete(g.turns, oldest)
	}
}

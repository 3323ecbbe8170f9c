package conversation

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/internal/lru"
	"ingot/model"
)

// The bounds of what is remembered. An event has 160 bytes and its texts at most 288, so it is 30 MB
// at most.
const (
	maxEvents  = 64      // of a card: the newest
	maxKnown   = 1 << 16 // events of cards that were served something
	maxUnknown = 1 << 13 // events of all others
	maxText    = 96      // bytes of one text
)

// lookBack is how many events back one that is routine may have come before: firmware that asks by
// IPv4 and IPv6 in turn, and is not answered, says one thing.
const lookBack = 4

// Log remembers the newest events of each card, by MAC address. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex // guards the cards in both caches
	known   *lru.Cache[string, *card]
	unknown *lru.Cache[string, *card]
}

// card is what one network card asked, the oldest first.
type card struct{ events []model.CardEvent }

// New returns a Log that remembers nothing yet.
func New(reg prometheus.Registerer) *Log {
	l := &Log{known: lru.New[string, *card](maxKnown), unknown: lru.New[string, *card](maxUnknown)}
	if reg != nil {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ingot_card_timelines",
			Help: "Network cards whose requests are remembered.",
		}, l.cards))
	}
	return l
}

func (l *Log) cards() float64 {
	known, _ := l.known.Size()
	unknown, _ := l.unknown.Size()
	return float64(known + unknown)
}

// Add remembers an event of the card with a MAC address. One of no card is passed over.
func (l *Log) Add(mac string, e model.CardEvent) {
	if mac == "" {
		return
	}
	e.Asked, e.From, e.Answer = text(e.Asked), text(e.From), text(e.Answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	c, in := l.find(mac)
	grown := c.add(e)
	if in == l.unknown && e.Result == model.CardServed {
		l.unknown.Drop(mac)
		in, grown = l.known, true
	}
	if grown {
		in.Put(mac, c, len(c.events))
	}
}

// find returns a card, and where it is remembered: a new one among the unknown.
func (l *Log) find(mac string) (*card, *lru.Cache[string, *card]) {
	for _, in := range []*lru.Cache[string, *card]{l.known, l.unknown} {
		if c, ok := in.Get(mac); ok {
			return c, in
		}
	}
	return &card{}, l.unknown
}

// Of returns what is remembered of the card with a MAC address, the oldest first.
func (l *Log) Of(mac string) []model.CardEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range []*lru.Cache[string, *card]{l.known, l.unknown} {
		if c, ok := in.Get(mac); ok {
			return slices.Clone(c.events)
		}
	}
	return nil
}

// add adds an event, and reports whether there is one more than before. One that is like the last is
// counted there; one that is routine, like one of the last few.
func (c *card) add(e model.CardEvent) bool {
	back := 1
	if e.Routine {
		back = lookBack
	}
	for i := len(c.events) - 1; i >= max(0, len(c.events)-back); i-- {
		if same(c.events[i], e) {
			c.events[i] = merged(c.events[i], e)
			return false
		}
	}
	if len(c.events) == maxEvents {
		c.events = append(c.events[:0], c.events[1:]...)
		c.events = append(c.events, e)
		return false
	}
	c.events = append(c.events, e)
	return true
}

func same(a, b model.CardEvent) bool {
	return a.Protocol == b.Protocol && a.Asked == b.Asked && a.From == b.From && a.Result == b.Result && a.Answer == b.Answer
}

func merged(a, again model.CardEvent) model.CardEvent {
	a.Times = max(a.Times, 1) + 1
	a.Last = again.At
	a.Bytes += again.Bytes
	a.Seconds += again.Seconds
	return a
}

// text makes what may come from outside printable, and short.
func text(s string) string {
	fits := len(s) <= maxText
	for i := 0; fits && i < len(s); i++ {
		fits = ' ' <= s[i] && s[i] <= '~'
	}
	if fits {
		return s
	}
	b := []byte(s[:min(len(s), maxText)])
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// limitedFor is for how long a card that was held back by a limit is shown as limited.
const limitedFor = time.Minute

// Limited returns the newest event of a card that a limit held back within the last minute, and
// false when there is none.
func Limited(events []model.CardEvent, now time.Time) (e model.CardEvent, ok bool) {
	for _, e := range slices.Backward(events) {
		last := e.Last
		if last.IsZero() {
			last = e.At
		}
		if e.Result == model.CardLimited && now.Sub(last) < limitedFor {
			return e, true
		}
	}
	return e, false
}

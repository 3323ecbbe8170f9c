package bootsvc

import (
	"sync"
	"time"

	"ingot/bootsvc/internal/lru"
	"ingot/model"
)

// A refusal is logged at most once every logEvery, and at most maxLogged servers and
// reasons are remembered for that.
const (
	maxLogged = 1 << 12
	logEvery  = time.Minute
)

// loggedRefusal is what is not logged again for a while.
type loggedRefusal struct {
	server model.ServerName
	reason model.TicketRefusal
}

// logLimiter keeps a machine that asks in a loop from filling the log. It is safe for
// concurrent use.
type logLimiter struct {
	mu   sync.Mutex
	last *lru.Cache[loggedRefusal, time.Time]
}

func newLogLimiter() *logLimiter {
	return &logLimiter{last: lru.New[loggedRefusal, time.Time](maxLogged)}
}

func (l *logLimiter) allow(r loggedRefusal, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last.Get(r); ok && now.Sub(last) < logEvery {
		return false
	}
	l.last.Put(r, now, 1)
	return true
}

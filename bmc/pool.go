package bmc

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"ingot/model"
)

// Options say how BMCs are accessed.
type Options struct {
	// RequestsPerSecond bounds the requests to one BMC, fewer while it answers
	// slowly; 0 = unlimited. A BMC that was left alone takes two seconds' worth at
	// once.
	RequestsPerSecond float64
	// MaxInFlight bounds the requests under way to one BMC; 0 = 2.
	MaxInFlight int
	// Timeout bounds one request, from sending it to having read the answer; 0 =
	// 60 s, for real BMCs take 17 s.
	Timeout time.Duration
	// CA verifies the BMCs' certificates. Without it they are pinned on first contact.
	CA *x509.CertPool
	// Networks are where BMCs are. Nothing is sent to any other address.
	Networks model.BMCNetworks
	// Permit is asked before each request that changes a machine, after the request has
	// waited for its turn and its connection, and as the last thing before it is
	// written. An error keeps it from being sent and is returned. nil = always allowed.
	Permit func(ctx context.Context, t model.BMCTarget, uri string) error

	// ReadBack is how long to wait, each time, before a boot override is read again that is
	// not shown at once; nil = 1, 2 and 3 s.
	ReadBack []time.Duration

	// Sessions remembers the sessions that are open, for the next process to use or
	// delete if this one is killed. nil = they are not remembered.
	Sessions Sessions

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time

	taskPoll    time.Duration   // 0 = taskPoll
	freshFor    time.Duration   // 0 = freshFor
	logOutAgain []time.Duration // nil = logOutAgain
	// observe, if set, is told of each request that was answered.
	observe func(method, uri string, took time.Duration)
}

// logoutWithin bounds the deletion of a session, which must not hold up a shutdown.
const logoutWithin = 5 * time.Second

// logOutAgain is how long to wait, each time, before a logout that failed is tried again from
// a BMC that is no longer wanted: nobody would think of it later.
var logOutAgain = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}

var errClosed = errors.New("the pool of BMC clients is closed")

// Pool holds one client for each BMC. Its methods may be called concurrently.
type Pool struct {
	opts    Options
	metrics *metrics
	breaker *breaker

	mu       sync.Mutex
	closed   bool
	clients  map[model.BMCName]*client
	retired  sync.WaitGroup        // clients that are logging out
	retiring map[model.BMCName]int // how many of each BMC are
	closing  chan struct{}         // closed with the pool
}

// NewPool returns a Pool. It opens no connection until one is needed.
func NewPool(o Options) *Pool {
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 2
	}
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.ReadBack == nil {
		o.ReadBack = readBackAfter
	}
	if o.logOutAgain == nil {
		o.logOutAgain = logOutAgain
	}
	o.taskPoll = cmp.Or(o.taskPoll, taskPoll)
	o.freshFor = cmp.Or(o.freshFor, freshFor)
	o.Log = o.Log.With("component", "bmc")
	b := newBreaker(o.Clock)
	return &Pool{
		opts:     o,
		breaker:  b,
		metrics:  newMetrics(o.Registerer, b.count, o.RequestsPerSecond),
		clients:  make(map[model.BMCName]*client),
		retiring: make(map[model.BMCName]int),
		closing:  make(chan struct{}),
	}
}

// client returns the BMC's client, a new one if how to reach it has changed.
func (p *Pool) client(ctx context.Context, t model.BMCTarget) (*client, error) {
	if err := checkTarget(t); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	c := p.clients[t.Name]
	if c == nil || !c.serves(t) {
		old := c
		c = newClient(p, t)
		if old != nil {
			p.retire(ctx, old)
		}
		// What is kept is of other credentials, of another address, or about to be logged out.
		c.resumed = p.retiring[t.Name] > 0
		p.clients[t.Name] = c
	}
	c.trial.Store(t.Trial)
	if c.pin.expect(t.Fingerprint) {
		c.wire.closeIdle()
	}
	return c, nil
}

func checkTarget(t model.BMCTarget) error {
	switch {
	case t.Name == "":
		return errors.New("a BMC target has no name")
	case t.Scheme != "http" && t.Scheme != "https":
		return fmt.Errorf("bmc %s: scheme %q is neither http nor https", t.Name, t.Scheme)
	case t.Address == "":
		return fmt.Errorf("bmc %s: no address", t.Name)
	case t.TLSMinimum != "" && tlsVersions[t.TLSMinimum] == 0:
		return fmt.Errorf("bmc %s: no version of TLS is %q", t.Name, t.TLSMinimum)
	}
	return nil
}

// retire logs a client out beside the caller's work. The caller holds mu.
func (p *Pool) retire(ctx context.Context, c *client) {
	ctx = context.WithoutCancel(ctx)
	name := c.target.Name
	p.retiring[name]++
	p.retired.Go(func() {
		defer p.retiredOne(name)
		if err := c.close(ctx, p.opts.logOutAgain, p.closing); err != nil {
			c.log.Warn("a session is left open on the BMC", "err", err)
		}
	})
}

func (p *Pool) retiredOne(name model.BMCName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retiring[name]--; p.retiring[name] == 0 {
		delete(p.retiring, name)
	}
}

// Forget drops the client of a BMC that is no longer wanted and logs it out.
func (p *Pool) Forget(ctx context.Context, name model.BMCName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[name]; c != nil {
		delete(p.clients, name)
		p.breaker.forget(name)
		p.retire(ctx, c)
	}
}

// Close deletes all sessions, each within five seconds even if ctx has ended: a
// session that is left open takes up one of the BMC's few for half an hour.
// Nothing may be asked of the pool afterwards.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	clients := p.clients
	if !p.closed {
		close(p.closing)
	}
	p.closed, p.clients = true, nil
	p.mu.Unlock()

	ctx = context.WithoutCancel(ctx)
	var g errgroup.Group
	g.SetLimit(64)
	for _, c := range clients {
		g.Go(func() error { return c.close(ctx, nil, p.closing) })
	}
	err := g.Wait()
	p.retired.Wait()
	return err
}

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

package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ingot/model"
)

// Rack is a rack of simulated BMCs and their servers.
type Rack struct {
	opts  Options
	kind  *personality
	tree  *node        // the Redfish resources of every BMC
	hosts *http.Client // what the machines fetch and post with
	store store
	dir   string // of what virtual machines have: Options.StateDir, or one for the time being

	bmcs     []*BMC
	servers  []*Server
	byName   map[model.ServerName]*Server
	byUUID   map[string]*Server
	bmcNamed map[model.BMCName]*BMC

	seq atomic.Uint64 // of the newest event

	mu      sync.Mutex
	bootURL string
	pending []func(context.Context) // waiting for Run to start them
	ended   bool
	running bool
	wake    chan struct{} // capacity 1: pending has something
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when Run is over
}

// New makes a rack and lets its BMCs listen, so that their addresses are known;
// they answer once Run is called.
func New(o Options) (*Rack, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("simulated rack: %w", err)
	}
	kind := personalities[o.Personality]
	r := &Rack{
		opts: o, kind: kind, tree: newTree(kind), hosts: newHostClient(), store: store{dir: o.StateDir},
		byName: make(map[model.ServerName]*Server), byUUID: make(map[string]*Server), bmcNamed: make(map[model.BMCName]*BMC),
		bootURL: strings.TrimSuffix(o.BootURL, "/"),
		wake:    make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if err := r.store.prepare(); err != nil {
		return nil, fmt.Errorf("simulated rack: %w", err)
	}
	if err := r.makeDir(); err != nil {
		return nil, fmt.Errorf("simulated rack: %w", err)
	}
	for i := range o.BMCs {
		if err := r.addBMC(i); err != nil {
			r.unlisten()
			r.removeDir()
			return nil, fmt.Errorf("simulated rack: %w", err)
		}
	}
	return r, nil
}

func (r *Rack) addBMC(i int) error {
	b, err := newBMC(r, i)
	if err != nil {
		return err
	}
	r.bmcs = append(r.bmcs, b)
	r.bmcNamed[b.name] = b
	for _, s := range b.servers {
		r.servers = append(r.servers, s)
		r.byName[s.name] = s
		r.byUUID[s.uuid] = s
	}
	return nil
}

// newHostClient returns the HTTP client that all machines share, for the sake of
// kept connections; each request carries its own deadline. One that asks from an address
// of its own keeps none.
func newHostClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}}
}

// newOwnClient returns an HTTP client that asks from an address.
func newOwnClient(from netip.Addr) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true}}
}

// web is what a server fetches and posts with.
func (s host) web() *http.Client {
	if s.own != nil {
		return s.own
	}
	return s.rack().hosts
}

// Run serves Redfish and runs the machines until ctx is done or the rack is
// closed, and waits for all of it to end. It is to be called once.
func (r *Rack) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.begin(); err != nil {
		return err
	}
	defer close(r.done)

	var wg sync.WaitGroup
	for r.next(ctx) {
		for _, run := range r.take() {
			wg.Go(func() { run(ctx) })
		}
	}
	cancel()
	r.end()
	wg.Wait()
	r.hosts.CloseIdleConnections()
	r.removeDir()
	return nil
}

// makeDir makes the folder for the files of virtual machines.
func (r *Rack) makeDir() (err error) {
	r.dir = r.opts.StateDir
	if r.dir == "" && r.opts.Machines != nil {
		if r.dir, err = os.MkdirTemp("", "ingot-sim-"); err != nil {
			return fmt.Errorf("folder for disks: %w", err)
		}
	}
	return nil
}

// removeDir removes what nobody asked to keep.
func (r *Rack) removeDir() {
	if r.opts.StateDir != "" || r.dir == "" {
		return
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.opts.Log.Warn("folder of disks is left", "path", r.dir, "err", err)
	}
}

func (r *Rack) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.ended {
		return fmt.Errorf("simulated rack: it runs already or is closed")
	}
	r.running = true
	return nil
}

// next waits until there is something to start, and reports false when the rack
// is to stop.
func (r *Rack) next(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.quit:
		return false
	case <-r.wake:
		return true
	}
}

// start hands run to Run, which starts it and waits for it; before Run it waits
// for that, after Run it does nothing.
func (r *Rack) start(run func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.pending = append(r.pending, run)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Rack) take() []func(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs := r.pending
	r.pending = nil
	return runs
}

// end keeps anything from being started and closes the listeners.
func (r *Rack) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.unlisten()
}

func (r *Rack) unlisten() {
	for _, b := range r.bmcs {
		b.unlisten()
	}
}

// Close ends the rack and waits for Run to return. It may be called again.
func (r *Rack) Close() {
	r.mu.Lock()
	running, ended := r.running, r.ended
	r.ended = true
	r.mu.Unlock()
	if !ended {
		close(r.quit)
	}
	if running {
		<-r.done
	}
	r.unlisten()
	r.removeDir()
}

// SetBootURL tells the machines' firmware where the boot service is. A URL that
// cannot be used fails each network boot, and their records say so.
func (r *Rack) SetBootURL(base string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bootURL = strings.TrimSuffix(base, "/")
}

// BootURL is where the machines' firmware looks for the boot service.
func (r *Rack) BootURL() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bootURL
}

// BMCs are the rack's BMCs, in the order of their names' numbers.
func (r *Rack) BMCs() []*BMC { return r.bmcs }

// Servers are the rack's servers, in the order of their BMCs and indices.
func (r *Rack) Servers() []*Server { return r.servers }

// BMC returns the BMC of that name, or nil.
func (r *Rack) BMC(name model.BMCName) *BMC { return r.bmcNamed[name] }

// Server returns the server of that name, or nil.
func (r *Rack) Server(name model.ServerName) *Server { return r.byName[name] }

// ServerByUUID returns the server with that UUID in any case, or nil.
func (r *Rack) ServerByUUID(uuid string) *Server { return r.byUUID[strings.ToLower(uuid)] }

// Counted is how often something happened, in all and by BMC.
type Counted struct {
	Total int64
	ByBMC map[model.BMCName]int64
}

func (r *Rack) count(of func(*BMC) int64) Counted {
	c := Counted{ByBMC: make(map[model.BMCName]int64, len(r.bmcs))}
	for _, b := range r.bmcs {
		n := of(b)
		c.ByBMC[b.name] = n
		c.Total += n
	}
	return c
}

// Requests counts the Redfish requests that were received.
func (r *Rack) Requests() Counted { return r.count((*BMC).Requests) }

// Connections counts the connections that were accepted, and so the TLS
// handshakes.
func (r *Rack) Connections() Counted { return r.count((*BMC).Connections) }

// Sessions counts the Redfish sessions that are open now.
func (r *Rack) Sessions() Counted { return r.count(func(b *BMC) int64 { return int64(b.Sessions()) }) }

// drain reads what is left of a small body, so that its connection is kept.
func drain(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 64<<10))
	_ = body.Close()
}

package sim

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ingot/model"
)

// BMC is one simulated baseboard management controller.
type BMC struct {
	rack    *Rack
	name    model.BMCName
	number  int // from 1, the slot in the rack
	uuid    string
	mac     string
	serial  string
	servers []*Server
	byID    map[string]*Server // by the ID of the ComputerSystem

	faults   faults
	sessions sessions
	accounts accounts
	events   subscriptions

	requests    atomic.Int64
	refused     atomic.Int64
	connections atomic.Int64
	inFlight    atomic.Int64
	maxInFlight atomic.Int64
	bootedAt    atomic.Int64 // Unix seconds

	certificate atomic.Pointer[tls.Certificate]
	mu          sync.Mutex
	addr        string
	listening   *listening // nil while the BMC refuses connections
}

// listening is a listener with the HTTP server behind it.
type listening struct {
	listener net.Listener
	server   *http.Server
	open     sync.WaitGroup // connections
}

func newBMC(r *Rack, i int) (*BMC, error) {
	b := &BMC{
		rack: r, name: model.BMCName(fmt.Sprintf("rack1-bmc-%02d", i+1)), number: i + 1,
		byID: make(map[string]*Server, r.opts.SystemsPerBMC),
	}
	b.bootedAt.Store(time.Now().Unix())
	id := r.identity(string(b.name))
	b.uuid, b.mac, b.serial = id.uuid(), r.mac(b.number, 0, bmcPort), id.serial()
	b.accounts.add(account{name: r.opts.Username, password: r.opts.Password, role: "Administrator", enabled: true})
	kept, err := r.store.bmc(b.name)
	if err != nil {
		return nil, err
	}
	cert, err := kept.certificateOrNew(r.opts.Host)
	if err != nil {
		return nil, fmt.Errorf("BMC %s: %w", b.name, err)
	}
	b.certificate.Store(cert)
	for j := range r.opts.SystemsPerBMC {
		s, err := newServer(b, j)
		if err != nil {
			return nil, err
		}
		b.servers = append(b.servers, s)
		b.byID[s.id] = s
	}
	return b, b.listenFirst(kept.Address)
}

// listenFirst listens on the port that was asked for, or else where the BMC did
// before, if that is still free, or on any port.
func (b *BMC) listenFirst(before string) error {
	if first := b.rack.opts.Port; first != 0 {
		return b.listen(net.JoinHostPort(b.rack.opts.Host, strconv.Itoa(first+b.number-1)))
	}
	if before != "" && b.listen(before) == nil {
		return nil
	}
	return b.listen(net.JoinHostPort(b.rack.opts.Host, "0"))
}

func (b *BMC) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("BMC %s: listen: %w", b.name, err)
	}
	d := b.newListening(l)
	b.mu.Lock()
	b.addr, b.listening = l.Addr().String(), d
	b.mu.Unlock()
	b.rack.start(func(ctx context.Context) { d.serve(ctx) })
	return b.save()
}

func (b *BMC) newListening(l net.Listener) *listening {
	d := &listening{listener: l}
	d.server = &http.Server{
		Handler:           service{b},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that mistrust the certificate are no news
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				b.connections.Add(1)
				d.open.Add(1)
			case http.StateClosed, http.StateHijacked:
				d.open.Done()
			case http.StateActive, http.StateIdle:
			}
		},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return b.certificate.Load(), nil
			},
		},
	}
	return d
}

// serve answers until it is closed or ctx ends, and waits for the connections.
func (d *listening) serve(ctx context.Context) {
	d.server.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, d.close)
	defer stop()
	_ = d.server.ServeTLS(d.listener, "", "") // it ends because it was closed
	d.open.Wait()
}

func (d *listening) close() {
	_ = d.listener.Close()
	_ = d.server.Close()
}

// unlisten stops listening and drops the connections; the address stays known.
func (b *BMC) unlisten() {
	b.mu.Lock()
	d := b.listening
	b.listening = nil
	b.mu.Unlock()
	if d != nil {
		d.close()
	}
}

// reopenWithin is how long it waits for the port that it had: the kernel may have lent
// it to somebody's outgoing connection.
const reopenWithin = 10 * time.Second

// reopen listens again where it did before.
func (b *BMC) reopen() error {
	for end := time.Now().Add(reopenWithin); ; time.Sleep(20 * time.Millisecond) {
		err := b.listen(b.Addr())
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return err
		}
	}
}

// renewCertificate replaces the certificate and drops the connections that were
// made with the old one.
func (b *BMC) renewCertificate() error {
	cert, err := newCertificate(b.rack.opts.Host)
	if err != nil {
		return fmt.Errorf("BMC %s: %w", b.name, err)
	}
	b.certificate.Store(cert)
	b.unlisten()
	return b.reopen()
}

// move makes the BMC listen on another port.
func (b *BMC) move() error {
	b.mu.Lock()
	old := b.listening
	b.mu.Unlock()
	// The new port is taken while the old one is still held, so that they differ.
	if err := b.listen(net.JoinHostPort(b.rack.opts.Host, "0")); err != nil {
		return err
	}
	if old != nil {
		old.close()
	}
	return nil
}

// save keeps what a BMC must still be after a restart of the rack.
func (b *BMC) save() error {
	return b.rack.store.saveBMC(b.name, b.Addr(), b.certificate.Load())
}

// Name is the BMC's name.
func (b *BMC) Name() model.BMCName { return b.name }

// Addr is where the BMC listens, host:port.
func (b *BMC) Addr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addr
}

// MAC is the MAC address of the BMC's network interface, in lower case.
func (b *BMC) MAC() string { return b.mac }

// UUID is the BMC's own UUID, not that of a server.
func (b *BMC) UUID() string { return b.uuid }

// Servers are the BMC's servers by index.
func (b *BMC) Servers() []*Server { return b.servers }

// Fingerprint is the SHA-256 of the certificate that is in use, in hexadecimal.
func (b *BMC) Fingerprint() string {
	sum := sha256.Sum256(b.certificate.Load().Certificate[0])
	return hex.EncodeToString(sum[:])
}

// Target is what a client needs to speak with the BMC.
func (b *BMC) Target() model.BMCTarget {
	return model.BMCTarget{
		Name: b.name, Scheme: "https", Address: b.Addr(),
		Username: b.rack.opts.Username, Password: b.rack.opts.Password,
	}
}

// Requests counts the Redfish requests that the BMC received.
func (b *BMC) Requests() int64 { return b.requests.Load() }

// Refused counts the requests that the BMC answered with 401.
func (b *BMC) Refused() int64 { return b.refused.Load() }

// Connections counts the connections that the BMC accepted.
func (b *BMC) Connections() int64 { return b.connections.Load() }

// Sessions counts the Redfish sessions that are open now.
func (b *BMC) Sessions() int { return b.sessions.open() }

// MaxInFlight is the largest number of requests that were under way at once.
func (b *BMC) MaxInFlight() int64 { return b.maxInFlight.Load() }

// enter counts a request in, and returns what counts it out.
func (b *BMC) enter() (leave func()) {
	b.requests.Add(1)
	n := b.inFlight.Add(1)
	for seen := b.maxInFlight.Load(); n > seen; seen = b.maxInFlight.Load() {
		if b.maxInFlight.CompareAndSwap(seen, n) {
			break
		}
	}
	return func() { b.inFlight.Add(-1) }
}

package bootsvc

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

const fleetBase = "http://boot.example:8082"

func fleetUUID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
func fleetMAC(n int) string  { return fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&255) }

// fleetAddr is the address that is leased to a machine: on loopback, so that it can
// really ask from there.
func fleetAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
}

func fleetTicket(n int) *model.Ticket {
	t := scriptTicket()
	t.UUID, t.ID, t.Server = fleetUUID(n), fmt.Sprintf("server-%d/1/%d", n, armed.Unix()), model.ServerName(fmt.Sprint("server-", n))
	return t
}

func fleetPath(what string, n int) string {
	if what == "script" {
		return "/ipxe/" + fleetUUID(n)
	}
	return "/ignition/" + fleetUUID(n) + "/" + tokenOf(fleetTicket(n)).Reveal()
}

// fleet is a Tickets, and a lease table, that does for each request what the daemon's
// do, by the same kinds of look-ups: package registry and package dhcp cannot be had
// here. Servers are found by UUID in both byte orders and by MAC address, payloads are
// kept sealed and, once asked for, in clear beside that, a note is checked against what is known and writes nothing the second
// time, uses are counted in memory.
type fleet struct {
	mu       sync.RWMutex
	byUUID   map[string][]model.ServerName
	byMAC    map[string]model.ServerName
	macs     map[model.ServerName][]string
	tickets  map[model.ServerName]*model.Ticket
	progress map[model.ServerName]*model.Progress
	sealed   map[string][]byte          // by ticket
	opened   map[string]model.Sensitive // of sealed
	aead     cipher.AEAD

	leases sync.Mutex
	held   map[netip.Addr]fleetLease

	counting sync.Mutex
	uses     map[fleetUse]*model.TicketUse
}

type fleetLease struct {
	mac     string
	expires time.Time
}

type fleetUse struct {
	ticket  string
	what    model.TicketThing
	client  netip.Addr
	refused model.TicketRefusal
}

// newFleet returns a fleet whose machines were served once what they ask for again.
func newFleet(size int, what string, payload func(*model.Ticket) string) (*fleet, error) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	f := &fleet{
		byUUID: make(map[string][]model.ServerName), byMAC: make(map[string]model.ServerName),
		macs: make(map[model.ServerName][]string), tickets: make(map[model.ServerName]*model.Ticket),
		progress: make(map[model.ServerName]*model.Progress),
		sealed:   make(map[string][]byte), opened: make(map[string]model.Sensitive),
		held: make(map[netip.Addr]fleetLease), uses: make(map[fleetUse]*model.TicketUse),
	}
	if f.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	for n := range size {
		t, mac := fleetTicket(n), fleetMAC(n)
		f.tickets[t.Server] = t
		f.byMAC[mac], f.macs[t.Server] = t.Server, []string{mac}
		for _, spelling := range model.UUIDVariants(t.UUID) {
			f.byUUID[spelling] = []model.ServerName{t.Server}
		}
		f.sealed[t.ID] = f.aead.Seal(nil, nil, []byte(payload(t)), []byte(t.ID))
		f.held[fleetAddr(n)] = fleetLease{mac, time.Now().Add(time.Hour)}
		p := &model.Progress{Ticket: t.ID, ScriptAt: armed, KernelAt: armed}
		if what == "ignition" {
			p.IgnitionAt = time.Now() // not so long ago that it is given no more
		}
		f.progress[t.Server] = p
	}
	return f, nil
}

// Offer implements Tickets.
func (f *fleet) Find(id string) (model.TicketHolder, bool) {
	name, ok := f.server(id)
	if !ok {
		return model.TicketHolder{}, false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return model.TicketHolder{Server: name, Ticket: f.tickets[name], Progress: f.progress[name]}, true
}

func (f *fleet) server(id string) (model.ServerName, bool) {
	if len(id) <= len("00:00:00:00:00:00") {
		f.mu.RLock()
		defer f.mu.RUnlock()
		name, ok := f.byMAC[id]
		return name, ok
	}
	canonical, err := model.CanonicalUUID(id)
	if err != nil || !model.UsableUUID(canonical) {
		return "", false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if found := f.byUUID[canonical]; len(found) == 1 {
		return found[0], true
	}
	return "", false
}

func (f *fleet) Payload(_ context.Context, t *model.Ticket) (model.Sensitive, error) {
	f.mu.RLock()
	sealed, known := f.sealed[t.ID], f.opened[t.ID]
	f.mu.RUnlock()
	if !known.IsZero() {
		return known, nil
	}
	plain, err := f.aead.Open(nil, nil, sealed, []byte(t.ID))
	if err != nil {
		return model.Sensitive{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened[t.ID] = model.NewSensitive(string(plain))
	return f.opened[t.ID], nil
}

func (f *fleet) Note(_ context.Context, t *model.Ticket, stage model.BootStage, _ netip.Addr) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p := f.progress[t.Server]
	if !netboot.InUse(f.tickets[t.Server]) || p == nil || p.Ticket != t.ID {
		return errors.New("the ticket is spent")
	}
	if _, isNew := p.Reached(stage, armed); isNew {
		return errors.New("the fleet of a benchmark has been served before")
	}
	return nil
}

func (f *fleet) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refused model.TicketRefusal) {
	now := time.Now()
	f.counting.Lock()
	defer f.counting.Unlock()
	key := fleetUse{t.ID, what, by.Client, refused}
	u := f.uses[key]
	if u == nil {
		u = &model.TicketUse{First: now}
		f.uses[key] = u
	}
	u.Last = now
	u.Count++
}

func (f *fleet) Pinned(string, string) (*model.Ticket, bool) { return nil, false }

func (f *fleet) MACs(server model.ServerName) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.macs[server]
}

func (f *fleet) Holder(a netip.Addr) (string, bool) {
	now := time.Now()
	f.leases.Lock()
	defer f.leases.Unlock()
	l, ok := f.held[a]
	return l.mac, ok && now.Before(l.expires)
}

// Leased implements netboot.Leases.

func runChild() error {
	size, err := strconv.Atoi(os.Getenv("BOOTSVC_FLEET"))
	if err != nil {
		return err
	}
	server, err := childServer(os.Getenv("BOOTSVC_CHILD"), os.Getenv("BOOTSVC_WHAT"), size)
	if err != nil {
		return err
	}
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(public.Addr(), control.Addr())
	go tellCPU(control)
	return server.Serve(public)
}

func tellCPU(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		fmt.Fprintln(conn, time.Duration(u.Utime.Nano()+u.Stime.Nano()))
		conn.Close()
	}
}

// childServer returns the server of a benchmark: the boot service, or the bare handler.
func childServer(name, what string, size int) (*http.Server, error) {
	g, err := ignition.New(ignition.Options{})
	if err != nil {
		return nil, err
	}
	payload := func(t *model.Ticket) string {
		claim, _ := g.ForClaim(fleetBoot(t)) // that of the first was looked at below
		return claim.Reveal()
	}
	if _, err := g.ForClaim(fleetBoot(fleetTicket(0))); err != nil {
		return nil, err
	}
	if name == "bare" {
		return bareServer(what, size, payload)
	}
	f, err := newFleet(size, what, payload)
	if err != nil {
		return nil, err
	}
	s, err := NewServer(Options{
		URL: fleetBase, Tickets: f, Token: key.Config,
		AddressRules: netboot.AddressRules{Evidence: netboot.Evidence{Leases: f}, Servers: f},
		Registerer:   prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	return NewHTTPServer(s.Handler()), nil
}

func fleetBoot(t *model.Ticket) ignition.ClaimBoot {
	return ignition.ClaimBoot{UUID: t.UUID, BootStateURL: "http://boot.example:10000/r/" + tokenOf(t).Reveal() + "/bootstate"}
}

// bareServer is the yardstick: what a program of nothing but net/http, a map and
// text/template does to render the same text.
func bareServer(what string, size int, payload func(*model.Ticket) string) (*http.Server, error) {
	first := fleetTicket(0)
	text := payload(first)
	if what == "script" {
		script, err := ticketScript(fleetBase, newBoot(first, tokenOf(first)), scriptOptions{})
		if err != nil {
			return nil, err
		}
		text = script
	}
	fields := func(t *model.Ticket) map[string]string {
		img := &t.Image
		return map[string]string{
			"Base": fleetBase, "UUID": t.UUID, "Token": tokenOf(t).Reveal(), "Kernel": img.Kernel.Digest[7:],
			"Initrd": img.Initrd.Digest[7:], "Squashfs": img.Squashfs.Digest[7:], "Image": img.Digest[7:],
		}
	}
	for name, value := range fields(first) {
		text = strings.ReplaceAll(text, value, "{{."+name+"}}")
	}
	page, err := template.New(what).Parse(text)
	if err != nil {
		return nil, err
	}
	servers := make(map[string]map[string]string, size)
	for n := range size {
		servers[fleetUUID(n)] = fields(fleetTicket(n))
	}
	serve := func(w http.ResponseWriter, r *http.Request) { _ = page.Execute(w, servers[r.PathValue("uuid")]) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ipxe/{uuid}", serve)
	mux.HandleFunc("GET /ignition/{uuid}/{token}", serve)
	return &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}, nil
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	bootmetadata "ingot/bootsvc/metadata"
	"ingot/cmd/daemon/access"
	"ingot/cmd/daemon/admin"
	"ingot/cmd/daemon/config"
	"ingot/cmd/daemon/listen"
)

// Addresses are where the listeners listen, as host:port; empty for one that is off.
type Addresses struct {
	Boot, Registry, Metadata, Admin, Webhook string
}

// listeners are the daemon's sockets. One that is off is nil. With a shared store all but admin's are closed until this
// process leads, so that a load balancer sends no machine to one that cannot serve it.
type listeners struct {
	boot, registry, metadata, admin, webhook net.Listener
}

// inOrder returns the listeners in the order of Options.Listeners.
func (l *listeners) inOrder() []*net.Listener {
	return []*net.Listener{&l.boot, &l.registry, &l.metadata, &l.admin, &l.webhook}
}

// openListeners opens every listener that o turns on, or none: no part of the daemon starts
// before it has all of them. With a shared store this is a test of the configuration.
func openListeners(ctx context.Context, o *config.Options) (*listeners, error) {
	var l listeners
	for i, s := range o.Listeners() {
		ln, err := listen.Open(ctx, s.Key, s.Address)
		if ln == nil && err == nil {
			continue
		}
		late := shares(o) && s.Key != adminKey
		if late && errors.Is(err, syscall.EADDRINUSE) {
			ln, err = listen.Closed(s.Address) // the leader may run on this machine
		}
		if err != nil {
			l.close()
			return nil, err
		}
		if *l.inOrder()[i] = ln; late {
			_ = ln.Close()
		}
	}
	return &l, nil
}

const adminKey = "admin.listen"

// shares reports whether other processes can share the store, and lead.
func shares(o *config.Options) bool { return o.Redis.URL != "" }

// reopen opens the listeners that openListeners closed, each at the port that it had.
func (l *listeners) reopen(ctx context.Context, o *config.Options) error {
	for i, s := range o.Listeners() {
		ln := l.inOrder()[i]
		if *ln == nil || s.Key == adminKey {
			continue
		}
		host, _, _ := net.SplitHostPort(s.Address)
		_, port, _ := net.SplitHostPort((*ln).Addr().String())
		var open net.Listener
		if err := untilFree(ctx, func() (err error) { open, err = listen.Open(ctx, s.Key, net.JoinHostPort(host, port)); return err }); err != nil {
			return err
		}
		*ln = open
	}
	return nil
}

const (
	// bindLimit is how long a new leader tries to open its sockets: a former one on this machine closes its TFTP socket
	// 3 s after it gave up the lead.
	bindLimit = 5 * time.Second
	bindRetry = 100 * time.Millisecond
)

// openSockets opens the sockets for machines once this process leads. A leader that cannot is of no use to machines, so it
// ends with the error, and another replica leads.
func (d *daemon) openSockets(ctx context.Context) error {
	if !shares(&d.opts) {
		return nil // open since the start
	}
	if err := d.listeners.reopen(ctx, &d.opts); err != nil {
		return err
	}
	return untilFree(ctx, func() error { return d.network.listen(ctx) })
}

// untilFree opens sockets, for bindLimit while their ports are in use.
func untilFree(ctx context.Context, open func() error) error {
	for end := time.Now().Add(bindLimit); ; {
		err := open()
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) || sleep(ctx, bindRetry) != nil {
			return err
		}
	}
}

func (l *listeners) addresses() Addresses {
	return Addresses{
		Boot: addressOf(l.boot), Registry: addressOf(l.registry), Metadata: addressOf(l.metadata), Admin: addressOf(l.admin),
		Webhook: addressOf(l.webhook),
	}
}

// close closes every listener; one that was closed before does no harm.
func (l *listeners) close() {
	for _, ln := range l.inOrder() {
		if *ln != nil {
			_ = (*ln).Close()
		}
	}
}

func addressOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// addrOf returns where ln listens, loopback for one that is off.
func addrOf(ln net.Listener) net.Addr {
	if ln == nil {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	}
	return ln.Addr()
}

// openAccess makes what decides who may look at the admin listener. It is told where that
// listens: what a name in admin.listen stands for is known only then.
func (d *daemon) openAccess() (err error) {
	ln, o := d.listeners.admin, &d.opts.Admin
	if ln == nil {
		return nil
	}
	if !access.IsLoopback(ln.Addr()) && !o.Guarded() {
		return fmt.Errorf("admin.listen: %s", config.Unguarded(o.Listen))
	}
	d.access, err = access.New(access.Options{
		Listener: ln.Addr(), Hosts: o.Names(), CertFile: o.TLS.CertFile, KeyFile: o.TLS.KeyFile, UsersFile: o.Users,
		Header: o.TrustedHeader.Name, From: o.TrustedHeader.Networks(), OpenMetrics: o.OpenMetrics,
		Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return err
}

// serve answers machines on the listeners. Their requests wait until the leases are known, which identify them. The answers
// of boot have time limits of their own.
func (d *daemon) serve(ctx context.Context, parts *parts) {
	l := d.listeners
	if l.boot != nil {
		parts.Go(func() error { return listen.Serve(ctx, l.boot, d.whenReady(d.bootsvc.Handler()), d.log) })
	}
	if l.registry != nil {
		parts.Go(func() error {
			return listen.Serve(ctx, l.registry, listen.EndUnreadAnswers(d.whenReady(d.clients.followReports(d.probes))), d.log)
		})
	}
	if l.metadata != nil {
		handler := bootmetadata.NewHandler(bootmetadata.Options{
			Machines: d.clients.boundServers(), Log: d.log, Registerer: d.metrics, Clock: d.clock,
		})
		parts.Go(func() error {
			return listen.Serve(ctx, l.metadata, listen.EndUnreadAnswers(d.whenReady(handler)), d.log)
		})
	}
	if l.webhook != nil {
		parts.Go(func() error { return listen.Serve(ctx, l.webhook, listen.EndUnreadAnswers(d.webhook), d.log) })
		parts.Go(func() error { return d.webhook.Run(ctx) })
	}
}

// whenReady has requests of machines wait until they can be told apart, which is after the
// records were read.
func (d *daemon) whenReady(next http.Handler) http.Handler {
	return listen.WaitUntilReady(d.leased, next)
}

// serveAdmin answers on the admin listener. Its answers have time limits of their own.
func (d *daemon) serveAdmin(ctx context.Context, parts *parts) {
	if d.listeners.admin == nil {
		return
	}
	shown := newFleet(d)
	index := admin.NewIndex(shown)
	handler := admin.NewHandler(admin.Options{
		Metrics: d.metrics, Checks: admin.Checks(d.parts()), Fleet: shown, Index: index,
		Log: d.log, Page: d.page(shown, index), Closing: ctx.Done(),
	})
	parts.Go(func() error {
		return listen.Serve(ctx, d.access.Listen(d.listeners.admin), d.access.Wrap(handler), d.log)
	})
}

package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

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

// listeners are the daemon's sockets. One that is off is nil.
type listeners struct {
	boot, registry, metadata, admin, webhook net.Listener
}

// openListeners opens every listener that o turns on, or none: no part of the daemon starts
// before it has all of them.
func openListeners(ctx context.Context, o *config.Options) (*listeners, error) {
	var l listeners
	into := []*net.Listener{&l.boot, &l.registry, &l.metadata, &l.admin, &l.webhook} // in the order of Listeners
	for i, s := range o.Listeners() {
		ln, err := listen.Open(ctx, s.Key, s.Address)
		if err != nil {
			l.close()
			return nil, err
		}
		*into[i] = ln
	}
	return &l, nil
}

func (l *listeners) addresses() Addresses {
	return Addresses{
		Boot: addressOf(l.boot), Registry: addressOf(l.registry), Metadata: addressOf(l.metadata), Admin: addressOf(l.admin),
		Webhook: addressOf(l.webhook),
	}
}

// close closes every listener; one that was closed before does no harm.
func (l *listeners) close() {
	for _, ln := range []net.Listener{l.boot, l.registry, l.metadata, l.admin, l.webhook} {
		if ln != nil {
			_ = ln.Close()
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

// serve answers on the listeners. Machines wait until the leases are known, by which they
// are told apart. The answers of boot and admin have time limits of their own.
func (d *daemon) serve(ctx context.Context, parts *errgroup.Group) {
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
	if l.admin != nil {
		shown := newFleet(d)
		index := admin.NewIndex(shown)
		handler := admin.NewHandler(admin.Options{
			Metrics: d.metrics, Checks: admin.Checks(d.parts()), Fleet: shown, Index: index,
			Log: d.log, Page: d.page(shown, index), Closing: ctx.Done(),
		})
		parts.Go(func() error { return listen.Serve(ctx, d.access.Listen(l.admin), d.access.Wrap(handler), d.log) })
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

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"ingot/bootsvc"
)

const (
	// maxConnections bounds the connections of one listener, see crowd.
	maxConnections = 4096
	// shutdownLimit is how long requests under way may go on once the daemon stops.
	shutdownLimit = 10 * time.Second
)

// Addresses are where the listeners listen, as host:port; empty for one that is off.
type Addresses struct {
	Boot, Registry, Metadata, Admin string
}

// listeners are the daemon's sockets. One that is off is nil.
type listeners struct {
	boot, registry, metadata, admin net.Listener
}

// listen binds every listener that o turns on, or none: nothing of the daemon
// starts before all of them are its own.
func listen(ctx context.Context, o *Options) (*listeners, error) {
	var l listeners
	into := []*net.Listener{&l.boot, &l.registry, &l.metadata, &l.admin} // in the order of listenSettings
	for i, s := range o.listenSettings() {
		ln, err := bind(ctx, s)
		if err != nil {
			l.close()
			return nil, err
		}
		*into[i] = ln
	}
	return &l, nil
}

// addresses returns where l listens.
func (l *listeners) addresses() Addresses {
	return Addresses{Boot: addressOf(l.boot), Registry: addressOf(l.registry), Metadata: addressOf(l.metadata), Admin: addressOf(l.admin)}
}

// close closes every listener; one that was closed before does no harm.
func (l *listeners) close() {
	for _, ln := range []net.Listener{l.boot, l.registry, l.metadata, l.admin} {
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

// bind opens the socket that s asks for, nil if it is turned off.
func bind(ctx context.Context, s listenSetting) (net.Listener, error) {
	if s.address == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", s.key, s.address, bindError(err))
	}
	return newCrowd(ln, maxConnections), nil
}

// bindError says what to do about a socket that could not be opened.
func bindError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; stop the program that listens there, or set another port", syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; set a port above 1023, or give Ingot the capability CAP_NET_BIND_SERVICE", syscall.EACCES)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine has no such address, set one that it has or leave the host out", syscall.EADDRNOTAVAIL)
	}
	return err
}

// serve answers requests on ln until ctx is done, then lets those under way
// finish within shutdownLimit. It closes ln, and returns nil when it was stopped.
func serve(ctx context.Context, ln net.Listener, handler http.Handler, log *slog.Logger) error {
	srv := bootsvc.NewHTTPServer(ageing(handler))
	srv.ConnContext = born
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	// a fresh deadline: ctx has just ended
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := srv.Shutdown(limit); err != nil {
		log.Warn("requests under way were cut off", "address", ln.Addr().String(), "err", err)
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// publicURL returns the URL at which servers reach the listener: configured, if
// that is not empty, else made from the listener's address. A listener on all
// addresses is reached at the first of host's that is not loopback.
func publicURL(configured string, listener net.Addr, host func() ([]net.Addr, error)) (string, error) {
	if configured != "" {
		return strings.TrimRight(configured, "/"), nil
	}
	tcp, ok := listener.(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("%s is no TCP address", listener)
	}
	ip := tcp.IP
	if ip.IsUnspecified() || ip == nil {
		addresses, err := host()
		if err != nil {
			return "", fmt.Errorf("list the addresses of this machine: %w", err)
		}
		ip = firstReachable(addresses)
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(ip.String(), fmt.Sprint(tcp.Port))}
	return u.String(), nil
}

// firstReachable returns the first address that other machines can reach, IPv4
// before IPv6 for the sake of firmware, or loopback when there is none.
func firstReachable(addresses []net.Addr) net.IP {
	var v6 net.IP
	for _, a := range addresses {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP
		}
		if v6 == nil {
			v6 = n.IP
		}
	}
	if v6 != nil {
		return v6
	}
	return net.IPv4(127, 0, 0, 1)
}

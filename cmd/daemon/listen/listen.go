// Package listen has the TCP listeners of the daemon: it opens their sockets, shares their
// connections out fairly among clients, and answers requests on them until it is stopped.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"ingot/bootsvc"
)

const (
	// maxConnections bounds the connections of one listener, see fairListener.
	maxConnections = 4096
	// shutdownLimit is how long requests under way may go on once the daemon stops.
	shutdownLimit = 10 * time.Second
)

// Open opens the socket at address, the value of a configuration key. It returns nil for
// an empty address: the listener is turned off.
func Open(ctx context.Context, key, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", key, address, bindError(err))
	}
	return newFairListener(ln, maxConnections), nil
}

// Closed returns a listener at address that is not open.
func Closed(address string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	return closed{at: at}, err
}

type closed struct {
	net.Listener
	at net.Addr
}

func (c closed) Close() error   { return nil }
func (c closed) Addr() net.Addr { return c.at }

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

// Serve answers requests on ln until ctx is done, then gives those under way
// shutdownLimit to finish. It closes ln, and returns nil when it was stopped.
func Serve(ctx context.Context, ln net.Listener, handler http.Handler, log *slog.Logger) error {
	srv := bootsvc.NewHTTPServer(closeOldConnections(handler))
	srv.ConnContext = withAcceptTime
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
		log.Warn("requests in progress were cut off", "address", ln.Addr().String(), "err", err)
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

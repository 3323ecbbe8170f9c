package bmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// dialFunc opens a connection.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// notAllowed is why Options.Networks keeps a connection from being made.
type notAllowed struct{ error }

// Unwrap returns what Options.Networks said.
func (e *notAllowed) Unwrap() error { return e.error }

// dialer makes connections for requests of scheme, to addresses that BMCs may have. It
// looks at what a name was resolved to, for a name may lead anywhere.
func (c *sender) dialer(scheme string) *net.Dialer {
	return &net.Dialer{
		Timeout: min(c.opts.Timeout, 15*time.Second), KeepAlive: 30 * time.Second,
		Control: func(_, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err == nil {
				err = c.opts.Networks.Refuse(at.Addr(), scheme)
			}
			if err != nil {
				return &notAllowed{err}
			}
			return nil
		},
	}
}

func (c *sender) dial(d *net.Dialer) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			c.counted.connections.Add(1)
			c.metrics.connections.Inc()
		}
		return conn, err
	}
}

// noHandshake begins the error of a BMC that does not answer a TLS handshake.
const noHandshake = "no TLS handshake"

// dialTLS makes connections with TLS and forgets the certificates, of which the pin
// has what it needs.
func dialTLS(dial dialFunc, cfg *tls.Config, within time.Duration) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, named(cfg, address))
		tooLate := fmt.Errorf(noHandshake+" within %s", within)
		ctx, cancel := context.WithTimeoutCause(ctx, within, tooLate)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = plain.Close() // it was never used
			if errors.Is(context.Cause(ctx), tooLate) {
				err = tooLate
			}
			return nil, err
		}
		// The state shares these lists with the connection, which would keep some 4 KB
		// for each certificate and uses none after the handshake: there are no tickets
		// to resume by. If it did not share them, only the memory would stay taken.
		state := conn.ConnectionState()
		clear(state.PeerCertificates)
		clear(state.VerifiedChains)
		return conn, nil
	}
}

// named is cfg for the host in address, unless it is for one already.
func named(cfg *tls.Config, address string) *tls.Config {
	host, _, err := net.SplitHostPort(address)
	if cfg.ServerName != "" || err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName, _, _ = strings.Cut(host, "%") // no certificate has a zone
	return cfg
}

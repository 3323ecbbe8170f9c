package bmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// dialFunc makes connections, as http.Transport wants them made.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dial counts the connections.
func (c *client) dial(d *net.Dialer) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			c.connections.Add(1)
			c.metrics.connections.Inc()
		}
		return conn, err
	}
}

// dialPlain makes connections without TLS.
func dialPlain(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: conn}, nil
	}
}

// dialTLS makes connections with TLS and forgets the certificates, of which the pin
// has what it needs.
func dialTLS(dial dialFunc, cfg *tls.Config, within time.Duration) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, named(cfg, address))
		tooLate := fmt.Errorf("no TLS handshake within %s", within)
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
		return &guarded{Conn: conn}, nil
	}
}

// named is cfg for the host in address, unless it is for one already.
func named(cfg *tls.Config, address string) *tls.Config {
	host, _, err := net.SplitHostPort(address)
	if cfg.ServerName != "" || err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}

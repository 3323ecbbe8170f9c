package daemon

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"ingot/bmc"
	"ingot/model"
	"ingot/registry"
)

// openBMCs makes the pool of BMC clients.
func (d *daemon) openBMCs() error {
	ca, err := certificates(d.opts.BMC.CAFile)
	if err != nil {
		return err
	}
	var timeout time.Duration // of one request; 0 = the pool's default
	if d.opts.Tuning.Fast {
		timeout = 10 * time.Second
	}
	d.pool = bmc.NewPool(bmc.Options{
		Timeout:           timeout,
		RequestsPerSecond: d.opts.BMC.RequestsPerSecond, MaxInFlight: d.opts.BMC.MaxInFlight, CA: ca, Networks: d.opts.BMC.Networks,
		Permit: d.permit, Sessions: sessions{d.registry}, Log: d.log, Registerer: d.metrics,
	})
	return nil
}

// sessions are the sessions on BMCs that outlive this process, as the BMC clients know
// them.
type sessions struct{ registry *registry.Registry }

// Kept implements bmc.Sessions.
func (s sessions) Kept(name model.BMCName) []bmc.Session {
	var kept []bmc.Session
	for _, k := range s.registry.Sessions() {
		if k.BMC == name {
			kept = append(kept, bmc.Session{URI: k.URI, Token: k.Token})
		}
	}
	return kept
}

// Keep implements bmc.Sessions.
func (s sessions) Keep(ctx context.Context, name model.BMCName, session bmc.Session) error {
	return s.registry.SaveSession(ctx, name, session.URI, session.Token)
}

// Drop implements bmc.Sessions.
func (s sessions) Drop(ctx context.Context, name model.BMCName, uri string) error {
	return s.registry.DropSession(ctx, name, uri)
}

// certificates reads a file of certificate authorities. It returns nil without one.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("bmc.caFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("bmc.caFile: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

package daemon

import (
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"ingot/bmc"
	"ingot/cmd/daemon/adapter"
)

// openBMCs makes the pool of BMC clients.
func (d *daemon) openBMCs() error {
	ca, err := certificates(d.opts.BMC.CAFile)
	if err != nil {
		return err
	}
	var timeout time.Duration    // of one request; 0 = the pool's default
	var readBack []time.Duration // nil = the pool's default
	if d.opts.Tuning.Fast {
		timeout, readBack = 10*time.Second, []time.Duration{100 * time.Millisecond}
	}
	d.pool = bmc.NewPool(bmc.Options{
		Timeout: timeout, ReadBack: readBack,
		RequestsPerSecond: d.opts.BMC.RequestsPerSecond, MaxInFlight: d.opts.BMC.MaxInFlight, CA: ca, Networks: d.opts.BMC.Networks,
		Permit: d.permit, Sessions: adapter.Sessions{Registry: d.registry}, Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return nil
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

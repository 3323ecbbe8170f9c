package daemon

import (
	"time"

	"ingot/bmc"
	"ingot/cmd/daemon/adapter"
)

// openBMCs makes the pool of BMC clients.
func (d *daemon) openBMCs() error {
	ca, err := d.opts.BMC.Authorities()
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
		RequestsPerSecond: d.opts.BMC.RequestsPerSecond, CA: ca, Networks: d.opts.BMC.Networks,
		Permit: d.leader.permit, Sessions: adapter.Sessions{Secrets: d.registry.Secrets}, Log: d.log, Registerer: d.metrics, Clock: d.clock,
	})
	return nil
}

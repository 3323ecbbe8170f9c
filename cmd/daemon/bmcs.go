package daemon

import (
	"time"

	"ingot/bmc"
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

package features

import (
	"io"
	"net"
	"sync"

	"ingot/bmc/sim"
)

// cable leads from a BMC's address to where its simulation listens.
type cable struct {
	listener net.Listener
	bmc      *sim.BMC
	mu       sync.Mutex
	open     map[net.Conn]bool // nil once the cable is pulled
	ended    sync.WaitGroup
}

func newCable(address string, bmc *sim.BMC) (*cable, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &cable{listener: l, bmc: bmc, open: make(map[net.Conn]bool)}
	c.ended.Go(c.run)
	return c, nil
}

func (c *cable) run() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return // it was pulled
		}
		far, err := net.Dial("tcp", c.bmc.Addr())
		if err != nil || !c.hold(near, far) {
			_ = near.Close()
			continue
		}
		c.ended.Go(func() { c.join(near, far) })
		c.ended.Go(func() { c.join(far, near) })
	}
}

func (c *cable) join(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// hold notes connections that end when the cable is pulled, unless it was.
func (c *cable) hold(all ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range all {
		if c.open == nil {
			_ = conn.Close()
			continue
		}
		c.open[conn] = true
	}
	return c.open != nil
}

// pull ends the cable and all that goes through it. It may be called again.
func (c *cable) pull() {
	_ = c.listener.Close()
	c.mu.Lock()
	for conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
	c.mu.Unlock()
	c.ended.Wait()
}

func (w *site) connect(d *device, bmc *sim.BMC) error {
	if old := w.cables[d]; old != nil {
		old.pull()
	}
	c, err := newCable(net.JoinHostPort(d.address.String(), w.bmcPort), bmc)
	if err != nil {
		return err
	}
	w.cables[d] = c
	w.clients = append(w.clients, c.pull)
	return nil
}

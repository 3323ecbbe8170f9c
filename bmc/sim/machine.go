package sim

import (
	"context"
	"fmt"
	"time"

	"ingot/model"
)

// machine is what is behind a BMC: hardware whose firmware boots. Its methods are
// called with the server's mu held, and none of them waits.
type machine interface {
	// change begins a transition.
	change(do transition)
	// reordered hears that the boot override or the boot order is another.
	reordered()
	// adopt makes it one that was found running, with image on its disk, or says
	// why that cannot be.
	adopt(image string) error
	// suffers returns nil if a fault of a server can befall it, or why not.
	suffers(f Fault) error
}

// build is what a machine is made of, as its BMC shows it.
type build struct {
	hardware *hardware
	nics     int
	targets  []string // of a boot override
	modes    []string // of a boot override
	byDHCP   bool     // the firmware learns the URL of an HTTP boot by DHCP alone
}

// pretended is a machine that does by itself, over HTTP, what firmware, probe and
// operating system do. It implements machine.
type pretended struct{ *Server }

// pretendedBuild is what the pretended machines of a personality are made of.
func pretendedBuild(k *personality) build {
	return build{hardware: k.hardware, nics: 2, targets: k.bootTargets, modes: overrideModes}
}

// change implements machine.
func (p pretended) change(do transition) {
	switch do {
	case transNothing:
	case transOn:
		p.switchOn(p.powerUp)
	case transShutdown:
		p.setPower(model.PowerPoweringOff)
		p.begin(func(ctx context.Context, life uint64) { p.shutDown(ctx, life, false) })
	case transReboot:
		p.begin(func(ctx context.Context, life uint64) { p.shutDown(ctx, life, true) })
	case transOff:
		p.darken("forced off")
	case transRestart:
		p.logRestart("restarted by force")
		p.begin(p.boot)
	case transCycle:
		p.darken("power cycled")
		p.switchOn(p.powerUp)
	}
}

// reordered implements machine: the firmware looks when it starts.
func (pretended) reordered() {}

// adopt implements machine.
func (p pretended) adopt(image string) error {
	p.end()
	p.disk = &Disk{Image: image, InstalledAt: time.Now()}
	p.system, p.progress = systemOS, progressOS
	p.cause = cause{by: CauseTest}
	p.logDisk(EventInstalled, "runs "+image, CauseTest)
	p.setPower(model.PowerOn)
	p.keep()
	return nil
}

// suffers implements machine.
func (pretended) suffers(Fault) error { return nil }

// powerUp is a life that begins in darkness.
func (p pretended) powerUp(ctx context.Context, life uint64) {
	if !sleep(ctx, p.delays().PowerOn) {
		return
	}
	if p.during(life, func() { p.setPower(model.PowerOn) }) {
		p.boot(ctx, life)
	}
}

// shutDown lets what runs end, and then begins anew or goes dark.
func (p pretended) shutDown(ctx context.Context, life uint64, again bool) {
	if !sleep(ctx, p.delays().PowerOff) {
		return
	}
	p.during(life, func() {
		if again {
			p.logRestart("restarted by its operating system")
			p.begin(p.boot)
			return
		}
		p.darken("shut down")
	})
}

// equip makes the machine behind the BMC, of the kind that the rack has.
func (s *Server) equip() error {
	r := s.rack()
	if len(r.opts.QEMU) == 0 {
		s.build, s.machine = pretendedBuild(r.kind), pretended{s}
		return nil
	}
	q, err := newQEMU(s, r.opts.QEMU[len(r.servers)+s.index])
	if err != nil {
		return fmt.Errorf("server %s: %w", s.name, err)
	}
	s.build, s.machine = q.spec.build(r.kind), q
	return nil
}

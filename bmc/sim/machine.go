package sim

import (
	"context"
	"fmt"
	"time"

	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// Machine is the hardware behind a BMC, whose firmware boots. Its methods are called with
// the server locked, and none of them waits.
type Machine interface {
	// Change begins a transition.
	Change(do Transition)
	// Reordered is called when the boot override or the boot order has changed.
	Reordered()
	// Adopt makes it a machine that was found running, with image on its disk, or says
	// why that is not possible.
	Adopt(image string) error
	// Suffers returns nil if the machine can have a fault of a server, or why not.
	Suffers(f Fault) error
}

// Virtual is a Machine that is a process of its own and has files.
type Virtual interface {
	// Console is the file that the serial port is written to.
	Console() string
	// DiskFiles are the raw disks.
	DiskFiles() []string
	// PID is the process while the machine is on, else 0.
	PID() int
}

// Machines puts machines behind the BMCs of a rack.
type Machines interface {
	// Check says what is wrong with them, for a rack of that number of servers.
	Check(servers int) error
	// Make makes the i-th machine of the rack, and says what it is made of.
	Make(c *Chassis, i int) (Machine, Build, error)
}

// Build is what a machine is made of, as its BMC shows it.
type Build struct {
	Hardware *Hardware
	NICs     int
	Targets  []string // of a boot override
	Modes    []string // of a boot override
	ByDHCP   bool     // the firmware learns the URL of an HTTP boot by DHCP alone
}

// pretended is a machine that does by itself, over HTTP, what firmware, probe and
// operating system do. It implements Machine.
type pretended struct{ *Server }

// pretendedBuild is what the pretended machines of a personality are made of.
func pretendedBuild(k *personality) Build {
	return Build{Hardware: k.hardware, NICs: 2, Targets: k.boot.targets, Modes: overrideModes}
}

// Change implements Machine.
func (p pretended) Change(do Transition) {
	switch do {
	case TransitionNone:
	case TransitionOn:
		p.switchOn(p.powerUp)
	case TransitionShutdown:
		p.setPower(model.PowerPoweringOff)
		p.begin(func(ctx context.Context, life uint64) { p.shutDown(ctx, life, false) })
	case TransitionReboot:
		p.begin(func(ctx context.Context, life uint64) { p.shutDown(ctx, life, true) })
	case TransitionOff:
		p.darken("forced off")
	case TransitionRestart:
		p.logRestart("restarted by force")
		p.begin(p.boot)
	case TransitionCycle:
		p.darken("power cycled")
		p.switchOn(p.powerUp)
	}
}

// Reordered implements Machine: the firmware looks when it starts.
func (pretended) Reordered() {}

// Adopt implements Machine.
func (p pretended) Adopt(image string) error {
	p.end()
	p.clearDisk(p.diskSerial(0))
	p.disk = &Disk{Image: image, InstalledAt: time.Now()}
	p.system, p.progress = systemOS, progressOS
	p.cause = cause{by: CauseTest}
	p.logDisk(EventInstalled, "runs "+image, CauseTest)
	p.setPower(model.PowerOn)
	p.keep()
	return nil
}

// Suffers implements Machine.
func (pretended) Suffers(Fault) error { return nil }

// powerUp is a life that begins in darkness.
func (p pretended) powerUp(ctx context.Context, life uint64) {
	if !delay.Wait(ctx, p.delays().PowerOn) {
		return
	}
	if p.during(life, func() { p.setPower(model.PowerOn) }) {
		p.boot(ctx, life)
	}
}

// shutDown lets what runs end, and then begins anew or goes dark.
func (p pretended) shutDown(ctx context.Context, life uint64, again bool) {
	if !delay.Wait(ctx, p.delays().PowerOff) {
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
	if r.opts.Machines == nil {
		s.build, s.machine = pretendedBuild(r.kind), pretended{s}
		return nil
	}
	m, build, err := r.opts.Machines.Make(&Chassis{s}, len(r.servers)+s.index)
	if err != nil {
		return fmt.Errorf("server %s: %w", s.name, err)
	}
	s.build, s.machine = build, m
	s.virtual, _ = m.(Virtual)
	return nil
}

// Console is where a virtual machine writes what its serial port says, "" of a
// pretended one. Without Options.StateDir the file is gone when the rack is.
func (s *Server) Console() string {
	if s.virtual != nil {
		return s.virtual.Console()
	}
	return ""
}

// DiskFiles are the raw disks of a virtual machine, in the order that it was given
// them. They may be read and written while the machine is off.
func (s *Server) DiskFiles() []string {
	if s.virtual != nil {
		return s.virtual.DiskFiles()
	}
	return nil
}

// PID is the process of a virtual machine that is on, 0 of others.
func (s *Server) PID() int {
	if s.virtual != nil {
		return s.virtual.PID()
	}
	return 0
}

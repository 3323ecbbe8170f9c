package sim

import (
	"context"
	"log/slog"
	"path/filepath"

	"ingot/model"
)

// Chassis is a server as the machine in it sees it: what the machine is called, and
// what becomes of its power and its boots. What says so is to be called with the
// server locked, as it is in the methods of a Machine and within During.
//
// A machine has one life after another: from power, or a restart, to the next or to
// darkness. The work of a life is a function that Begin or SwitchOn is given. What
// belongs to an earlier life has no effect any more.
type Chassis struct{ s *Server }

// Server is the server that the machine is of.
func (c *Chassis) Server() *Server { return c.s }

// Manufacturer is who the machine says that it is made by.
func (c *Chassis) Manufacturer() string { return c.s.rack().kind.manufacturer }

// Product is the model of the machine.
func (c *Chassis) Product() string { return c.s.model }

// SKU is the machine's stock-keeping unit.
func (c *Chassis) SKU() string { return c.s.rack().kind.sku }

// DiskSerial is the serial number of the i-th disk.
func (c *Chassis) DiskSerial(i int) string { return c.s.diskSerial(i) }

// BootTargets are those of a boot override that the BMC knows.
func (c *Chassis) BootTargets() []string { return c.s.rack().kind.boot.targets }

// File is where the machine has a file of its own.
func (c *Chassis) File(what string) string {
	return filepath.Join(c.s.rack().dir, "server-"+string(c.s.name)+"-"+what)
}

// Delays are those of the rack.
func (c *Chassis) Delays() Delays { return c.s.delays() }

// Log is the log of the rack.
func (c *Chassis) Log() *slog.Logger { return c.s.rack().opts.Log }

// During does f in the given life with the server locked, and reports false when that
// life is over.
func (c *Chassis) During(life uint64, f func()) bool { return c.s.during(life, f) }

// Begin begins a new life whose work is run. The server is locked.
func (c *Chassis) Begin(run func(ctx context.Context, life uint64)) { c.s.begin(run) }

// SwitchOn lets the machine come up, which is the work of run. The server is locked.
func (c *Chassis) SwitchOn(run func(ctx context.Context, life uint64)) { c.s.switchOn(run) }

// Begun reports whether the work of the present life has begun. The server is locked.
func (c *Chassis) Begun() bool { return c.s.stop != nil }

// Stop ends the work of the present life, which has begun. The server is locked.
func (c *Chassis) Stop() { c.s.stop() }

// Darken takes the power away at once. The server is locked.
func (c *Chassis) Darken(why string) { c.s.darken(why) }

// Power is the power state. The server is locked.
func (c *Chassis) Power() model.Power { return c.s.power }

// SetPower changes the power state and tells those who subscribed. The server is
// locked.
func (c *Chassis) SetPower(p model.Power) { c.s.setPower(p) }

// StartGuest notes that the machine is on and runs what only it knows. The server is
// locked.
func (c *Chassis) StartGuest() {
	c.s.system, c.s.progress = systemGuest, progressFirmware
	c.s.setPower(model.PowerOn)
}

// StartBoot is what the firmware does when it starts: it takes over the boot order that is
// pending, reads the override, uses it up, and begins a boot from what is returned. The server is locked.
func (c *Chassis) StartBoot() []BootSource { return c.s.startBoot() }

// BootOrder is what the firmware would boot from if it started now. The server is
// locked.
func (c *Chassis) BootOrder() []BootSource { return c.s.bootOrder() }

// WantsHTTP reports whether the firmware would follow an override to UEFI HTTP boot if
// it started now. The server is locked.
func (c *Chassis) WantsHTTP() bool {
	o := c.s.override
	return o.Enabled != "Disabled" && o.Target == string(model.BootUEFIHTTP) && !c.s.faults.has(FaultOverrideIgnored)
}

// Conclude notes what the last boot came to, if that is not known yet. The server is
// locked.
func (c *Chassis) Conclude(o Outcome, why string) { c.s.conclude(o, why) }

// Restarted notes that the BMC has the machine begin anew. The server is locked.
func (c *Chassis) Restarted(what string) { c.s.logRestart(what) }

// RestartedItself notes that the machine's own system has it begin anew. The server is
// locked.
func (c *Chassis) RestartedItself(what string) {
	c.s.cause = cause{by: CauseSystem}
	c.s.logRestart(what)
}

// Note adds to the server's events. The server is locked.
func (c *Chassis) Note(what string) { c.s.note(what) }

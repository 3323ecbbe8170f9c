package qemu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/delay"
	"ingot/model"
)

// maxConsole is the size of a console log, in bytes, from which on the next start
// of the machine begins a new one.
const maxConsole = 16 << 20

// vm is a machine that qemu emulates: a process while it is on. A life is that of a
// process; resets happen within it. It implements sim.Machine and sim.Virtual.
type vm struct {
	*sim.Chassis
	spec   Machine
	files  files
	slot   chan struct{} // taken by the process that has the disks and taps
	orders chan order    // to the process that runs

	again bool         // once the guest has shut down, it is switched on; the server's lock guards it
	pid   atomic.Int64 // of the process, 0 without one
}

// order is what the BMC wants of a running machine.
type order string

const (
	orderReorder order = "set the boot order"
	orderReset   order = "reset"
	orderPress   order = "press the power button"
)

// Why a life ends.
const (
	forcedOff = "forced off"
	shutDown  = "shut down"
)

// newVM makes the machine of a chassis, and its disks if they are not there yet.
func newVM(c *sim.Chassis, spec Machine) (*vm, error) {
	v := &vm{Chassis: c, spec: spec.withDefaults(), slot: make(chan struct{}, 1), orders: make(chan order, 8)}
	v.files.console = v.File("console.log")
	if v.spec.Firmware.uefi() {
		code, _, err := v.spec.ovmf()
		if err != nil {
			return nil, err
		}
		v.files.code, v.files.vars = code, v.File("vars.fd")
	}
	for i, d := range v.spec.Disks {
		path := v.File(fmt.Sprintf("disk%d.img", i))
		if err := makeDisk(path, d.SizeMiB<<20); err != nil {
			return nil, err
		}
		v.files.disks = append(v.files.disks, path)
	}
	return v, nil
}

// makeDisk makes a blank disk of size bytes unless there is one.
func makeDisk(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("disk: %w", err)
	case info.Size() != 0 && info.Size() != size:
		return fmt.Errorf("disk %s has %d MiB and not %d: remove it to begin with a blank one", path, info.Size()>>20, size>>20)
	}
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	return nil
}

// Change implements sim.Machine.
func (v *vm) Change(do sim.Transition) {
	if do != sim.TransitionNone {
		v.again = do == sim.TransitionReboot
	}
	switch do {
	case sim.TransitionNone:
	case sim.TransitionOn:
		v.SwitchOn(v.powerUp)
	case sim.TransitionShutdown, sim.TransitionReboot: // the guest decides what becomes of that
		v.order(orderPress)
	case sim.TransitionOff:
		v.switchOff()
	case sim.TransitionRestart:
		v.Restarted("restarted by force")
		v.order(orderReset)
	case sim.TransitionCycle:
		v.Darken("power cycled")
		v.SwitchOn(v.powerUp)
	}
}

// switchOff ends the process; the machine is off once that is gone. The server
// is locked.
func (v *vm) switchOff() {
	if !v.Begun() {
		v.Darken(forcedOff)
		return
	}
	v.SetPower(model.PowerPoweringOff)
	v.Stop()
}

// Reordered implements sim.Machine.
func (v *vm) Reordered() {
	if p := v.Power(); p == model.PowerOn || p == model.PowerPaused {
		v.order(orderReorder)
	}
}

// order hands an order to the process. It never waits: a machine that has so many
// left to carry out loses the next one.
func (v *vm) order(o order) {
	select {
	case v.orders <- o:
	default:
		v.Note("qemu is too busy to " + string(o))
	}
}

// Adopt implements sim.Machine.
func (v *vm) Adopt(string) error {
	return errors.New("a QEMU virtual machine cannot be found running: put a system on its disk and switch it on")
}

// Suffers implements sim.Machine.
func (v *vm) Suffers(f sim.Fault) error {
	if f.OfPretended() {
		return fmt.Errorf("fault %s is one of pretended machines: %s is a QEMU virtual machine, and runs real software", f, v.Server().Name())
	}
	return nil
}

// httpOnly reports whether the firmware is to leave PXE out if it starts now; the
// server is locked.
func (v *vm) httpOnly() bool {
	return v.spec.Firmware == FirmwareUEFIHTTP || v.spec.Firmware.uefi() && v.WantsHTTP()
}

// powerUp is a life that begins in darkness.
func (v *vm) powerUp(ctx context.Context, life uint64) {
	why := forcedOff
	if delay.Wait(ctx, v.Delays().PowerOn) {
		why = v.run(ctx, life)
	}
	v.over(life, why)
}

// replace is a life that begins with another process and without loss of power:
// qemu cannot be told while it runs to leave out PXE.
func (v *vm) replace(ctx context.Context, life uint64) { v.over(life, v.run(ctx, life)) }

// over notes that a life has ended in darkness, unless another has begun.
func (v *vm) over(life uint64, why string) {
	v.During(life, func() {
		v.Darken(why)
		if v.again && why == shutDown {
			v.Change(sim.TransitionOn)
		}
	})
}

// run is qemu from its start to its end, and returns why it ended. There is one
// process at a time, for a disk and a tap serve no two.
func (v *vm) run(ctx context.Context, life uint64) (why string) {
	select {
	case v.slot <- struct{}{}:
		defer func() { <-v.slot }()
	case <-ctx.Done():
		return forcedOff
	}
	r := &running{vm: v, life: life}
	if err := r.launch(ctx); err != nil {
		if ctx.Err() != nil {
			return forcedOff
		}
		v.Log().Warn("qemu does not start", "server", string(v.Server().Name()), "err", err)
		v.fail(life, err.Error())
		return "qemu does not start: " + err.Error()
	}
	defer v.pid.Store(0)
	defer r.p.stop()
	return r.attend(ctx)
}

func (v *vm) fail(life uint64, why string) {
	v.During(life, func() { v.Conclude(sim.OutcomeFailed, why) })
}

// running is a life of a machine while qemu runs.
type running struct {
	*vm
	life uint64
	p    *process

	httpOnly bool
	settled  <-chan time.Time // nil once the boot that is under way has left the start of the firmware
	shutdown string           // why qemu says that it ends
}

// launch starts qemu for the boot that is due and lets the machine go.
func (r *running) launch(ctx context.Context) error {
	if err := r.freshFiles(); err != nil {
		return err
	}
	args, ok := r.firstBoot()
	if !ok {
		return context.Canceled
	}
	p, err := startProcess(r.spec.command(), args)
	if err != nil {
		return err
	}
	r.p = p
	if err := r.resume(ctx); err != nil {
		p.stop()
		return fmt.Errorf("%w (%s)", err, p.death())
	}
	r.settle()
	return nil
}

// firstBoot has the firmware look at the override, and returns what qemu is to be
// started with. Orders that came before are carried out by that.
func (r *running) firstBoot() (args []string, ok bool) {
	ok = r.During(r.life, func() {
		for len(r.orders) > 0 {
			<-r.orders
		}
		r.httpOnly = r.vm.httpOnly()
		args = r.spec.args(r.files, r.card(), r.StartBoot(), r.httpOnly)
	})
	return args, ok
}

func (v *vm) card() card {
	s := v.Server()
	c := card{uuid: s.UUID(), manufacturer: v.Manufacturer(), product: v.Product(), sku: v.SKU(), serial: s.SerialNumber()}
	for i := range v.spec.Taps {
		c.macs = append(c.macs, s.MAC(i))
	}
	for i := range v.spec.Disks {
		c.diskSerials = append(c.diskSerials, v.DiskSerial(i))
	}
	return c
}

// freshFiles gives the firmware the variables that it was delivered with, for it
// would keep an order of its own in the old ones, and marks the start in the
// console log.
func (v *vm) freshFiles() error {
	if v.files.vars != "" {
		_, delivered, err := v.spec.ovmf()
		if err != nil {
			return err
		}
		vars, err := os.ReadFile(delivered)
		if err != nil {
			return fmt.Errorf("UEFI variables: %w", err)
		}
		if err := os.WriteFile(v.files.vars, vars, 0o600); err != nil {
			return fmt.Errorf("UEFI variables: %w", err)
		}
	}
	return markConsole(v.files.console, time.Now())
}

// markConsole adds a line to a console log, or begins a new one if it is long.
func markConsole(path string, now time.Time) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("console log: %w", err)
	}
	if err == nil && info.Size() > maxConsole {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return fmt.Errorf("console log: %w", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "\r\n=== power on %s ===\r\n", now.UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("console log: %w", err)
	}
	return nil
}

// resume lets the machine run and checks that it does.
func (r *running) resume(ctx context.Context) error {
	if err := r.p.monitor.negotiate(ctx); err != nil {
		return err
	}
	if err := r.p.monitor.do(ctx, "cont", nil); err != nil {
		return err
	}
	status, err := r.p.monitor.status(ctx)
	if err != nil {
		return err
	}
	if status != "running" {
		return fmt.Errorf("qemu is %s after its start", status)
	}
	r.During(r.life, func() {
		r.pid.Store(int64(r.p.cmd.Process.Pid))
		r.StartGuest()
	})
	return nil
}

// attend carries out orders and hears events until the process or ctx ends, and
// returns why it ended.
func (r *running) attend(ctx context.Context) string {
	for {
		select {
		case <-ctx.Done():
			return forcedOff
		case o := <-r.orders:
			r.obey(ctx, o)
		case e := <-r.p.monitor.events:
			r.hear(e)
		case <-r.settled:
			r.settled = nil
			r.reorder(ctx)
		case <-r.p.monitor.done: // as a rule because the process ends
			r.p.stop()
			return r.ended()
		}
	}
}

// ended says why a process is gone that this program did not end.
func (r *running) ended() string {
	for len(r.p.monitor.events) > 0 {
		r.hear(<-r.p.monitor.events)
	}
	if r.p.err == nil && r.shutdown == "guest-shutdown" {
		r.During(r.life, func() { r.Conclude(sim.OutcomeEnded, "") })
		return shutDown
	}
	why := "qemu died: " + r.p.death()
	if r.shutdown != "" {
		why += " (" + r.shutdown + ")"
	}
	r.Log().Warn("qemu died", "server", string(r.Server().Name()), "err", why)
	r.fail(r.life, why)
	return why
}

func (r *running) obey(ctx context.Context, o order) {
	var err error
	switch o {
	case orderReorder:
		if r.settled == nil { // else it is done once the boot has settled
			r.reorder(ctx)
		}
	case orderReset:
		r.reorder(ctx)
		err = r.p.monitor.do(ctx, "system_reset", nil)
	case orderPress:
		err = r.p.monitor.do(ctx, "system_powerdown", nil)
	}
	r.warn(ctx, err)
}

// warn logs an error of QEMU's, unless the end of the process causes it.
func (r *running) warn(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, errMonitorGone) {
		return
	}
	r.During(r.life, func() { r.Note("qemu: " + err.Error()) })
}

// reorder tells the firmware what to boot from when it starts next.
func (r *running) reorder(ctx context.Context) {
	var order []sim.BootSource
	if !r.During(r.life, func() { order = r.BootOrder() }) {
		return
	}
	r.warn(ctx, r.p.monitor.setBootIndexes(ctx, bootIndexes(order, len(r.spec.Taps), len(r.spec.Disks))))
}

// setBootIndexes puts the devices in order for the next start of the firmware. No
// two may have the same place even for a moment, so all lose theirs first.
func (m *monitor) setBootIndexes(ctx context.Context, all []bootIndex) error {
	set := func(b bootIndex) error {
		return m.do(ctx, "qom-set", map[string]any{"path": "/machine/peripheral/" + b.device, "property": "bootindex", "value": b.at})
	}
	for _, b := range all {
		if err := set(bootIndex{b.device, -1}); err != nil {
			return err
		}
	}
	placed := slices.DeleteFunc(slices.Clone(all), func(b bootIndex) bool { return b.at < 0 })
	for _, b := range placed {
		if err := set(b); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) hear(e monitorEvent) {
	switch e.name {
	case "RESET":
		r.restarted(e.guest)
	case "SHUTDOWN":
		r.shutdown = e.reason
	case "STOP": // qemu pauses a machine whose disk cannot be written
		r.During(r.life, func() { r.SetPower(model.PowerPaused) })
	case "RESUME":
		r.During(r.life, func() {
			if r.Power() == model.PowerPaused {
				r.SetPower(model.PowerOn)
			}
		})
	}
}

// restarted begins another boot. SeaBIOS resets the machine once more when it finds
// that it was reset, so a reset by the guest right after one is the same boot.
func (r *running) restarted(byGuest bool) {
	if byGuest && r.settled != nil {
		return
	}
	r.settle()
	r.During(r.life, func() {
		if byGuest {
			r.RestartedItself("restarted by its system")
			r.Conclude(sim.OutcomeEnded, "")
		}
		r.Conclude(sim.OutcomeCut, "")
		if r.vm.httpOnly() != r.httpOnly {
			r.Begin(r.replace)
			return
		}
		r.StartBoot()
	})
}

// settle waits for the firmware before the order of the next boot is set: it reads
// the order of this one again when it resets the machine.
func (r *running) settle() { r.settled = time.After(r.Delays().Settle) }

// Console implements sim.Virtual.
func (v *vm) Console() string { return v.files.console }

// DiskFiles implements sim.Virtual.
func (v *vm) DiskFiles() []string { return slices.Clone(v.files.disks) }

// PID implements sim.Virtual.
func (v *vm) PID() int { return int(v.pid.Load()) }

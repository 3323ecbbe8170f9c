package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ingot/model"
)

// maxConsole is the size of a console log, in bytes, from which on the next start
// of the machine begins a new one.
const maxConsole = 16 << 20

// qemu is a machine that qemu emulates: a process while it is on. A life is that
// of a process; resets happen within it. It implements machine.
type qemu struct {
	*Server
	spec   QEMUMachine
	files  qemuFiles
	slot   chan struct{} // taken by the process that has the disks and taps
	orders chan order    // to the process that runs

	// These are guarded by the server's mu.
	again bool // once the guest has shut down, it is switched on
	pid   int  // of the process, 0 without one
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

// newQEMU makes the machine of s, and its disks if they are not there yet.
func newQEMU(s *Server, spec QEMUMachine) (*qemu, error) {
	q := &qemu{Server: s, spec: spec.withDefaults(), slot: make(chan struct{}, 1), orders: make(chan order, 8)}
	q.files.console = q.path("console.log")
	if q.spec.Firmware.uefi() {
		code, _, err := q.spec.ovmf()
		if err != nil {
			return nil, err
		}
		q.files.code, q.files.vars = code, q.path("vars.fd")
	}
	for i, d := range q.spec.Disks {
		path := q.path(fmt.Sprintf("disk%d.img", i))
		if err := makeDisk(path, d.SizeMiB<<20); err != nil {
			return nil, err
		}
		q.files.disks = append(q.files.disks, path)
	}
	return q, nil
}

func (q *qemu) path(what string) string {
	return filepath.Join(q.rack().dir, "server-"+string(q.name)+"-"+what)
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

// change implements machine.
func (q *qemu) change(do transition) {
	if do != transNothing {
		q.again = do == transReboot
	}
	switch do {
	case transNothing:
	case transOn:
		q.switchOn(q.powerUp)
	case transShutdown, transReboot: // the guest decides what becomes of that
		q.order(orderPress)
	case transOff:
		q.switchOff()
	case transRestart:
		q.logRestart("restarted by force")
		q.order(orderReset)
	case transCycle:
		q.darken("power cycled")
		q.switchOn(q.powerUp)
	}
}

// switchOff ends the process; the machine is off once that is gone. The caller
// holds mu.
func (q *qemu) switchOff() {
	if q.stop == nil { // it was not even begun
		q.darken(forcedOff)
		return
	}
	q.setPower(model.PowerPoweringOff)
	q.stop()
}

// reordered implements machine.
func (q *qemu) reordered() {
	if q.power == model.PowerOn || q.power == model.PowerPaused {
		q.order(orderReorder)
	}
}

// order hands an order to the process. It never waits: a machine that has so many
// left to carry out loses the next one.
func (q *qemu) order(o order) {
	select {
	case q.orders <- o:
	default:
		q.note("qemu is too busy to " + string(o))
	}
}

// adopt implements machine.
func (q *qemu) adopt(string) error {
	return errors.New("a machine of qemu cannot be found running: put a system on its disk and switch it on")
}

// suffers implements machine.
func (q *qemu) suffers(f Fault) error {
	if slices.Contains(pretendedFaults, f) {
		return fmt.Errorf("fault %s is one of pretended machines: what a machine of qemu runs is real, as %s is", f, q.name)
	}
	return nil
}

// httpOnly reports whether the firmware is to leave PXE out if it starts now; the
// caller holds mu.
func (q *qemu) httpOnly() bool {
	wanted := q.override.Enabled != "Disabled" && q.override.Target == string(model.BootUEFIHTTP) && !q.faults.has(FaultOverrideIgnored)
	return q.spec.Firmware == FirmwareUEFIHTTP || q.spec.Firmware.uefi() && wanted
}

// powerUp is a life that begins in darkness.
func (q *qemu) powerUp(ctx context.Context, life uint64) {
	why := forcedOff
	if sleep(ctx, q.delays().PowerOn) {
		why = q.run(ctx, life)
	}
	q.over(life, why)
}

// replace is a life that begins with another process and without loss of power:
// qemu cannot be told while it runs to leave out PXE.
func (q *qemu) replace(ctx context.Context, life uint64) { q.over(life, q.run(ctx, life)) }

// over notes that a life has ended in darkness, unless another has begun.
func (q *qemu) over(life uint64, why string) {
	q.during(life, func() {
		q.darken(why)
		if q.again && why == shutDown {
			q.change(transOn)
		}
	})
}

// run is qemu from its start to its end, and returns why it ended. There is one
// process at a time, for a disk and a tap serve no two.
func (q *qemu) run(ctx context.Context, life uint64) (why string) {
	select {
	case q.slot <- struct{}{}:
		defer func() { <-q.slot }()
	case <-ctx.Done():
		return forcedOff
	}
	r := &running{qemu: q, life: life}
	if err := r.launch(ctx); err != nil {
		if ctx.Err() != nil {
			return forcedOff
		}
		q.rack().opts.Log.Warn("qemu does not start", "server", string(q.name), "err", err)
		q.fail(life, err.Error())
		return "qemu does not start: " + err.Error()
	}
	defer q.setPID(0)
	defer r.p.stop()
	return r.attend(ctx)
}

func (q *qemu) setPID(pid int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pid = pid
}

func (q *qemu) fail(life uint64, why string) {
	q.during(life, func() { q.conclude(OutcomeFailed, why) })
}

// running is a life of a machine while qemu runs.
type running struct {
	*qemu
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
	if err := r.letGo(ctx); err != nil {
		p.stop()
		return fmt.Errorf("%w (%s)", err, p.death())
	}
	r.settle()
	return nil
}

// firstBoot has the firmware look at the override, and returns what qemu is to be
// started with. Orders that came before are carried out by that.
func (r *running) firstBoot() (args []string, ok bool) {
	ok = r.during(r.life, func() {
		for len(r.orders) > 0 {
			<-r.orders
		}
		r.httpOnly = r.qemu.httpOnly()
		args = r.spec.args(r.files, r.card(), r.startBoot(), r.httpOnly)
	})
	return args, ok
}

// card is what the machine is called.
func (q *qemu) card() identityCard {
	k := q.rack().kind
	card := identityCard{uuid: q.uuid, manufacturer: k.manufacturer, product: q.model, sku: k.sku, serial: q.serial}
	for i := range q.spec.Taps {
		card.macs = append(card.macs, q.MAC(i))
	}
	for i := range q.spec.Disks {
		card.diskSerials = append(card.diskSerials, q.diskSerial(i))
	}
	return card
}

// freshFiles gives the firmware the variables that it was delivered with, for it
// would keep an order of its own in the old ones, and marks the start in the
// console log.
func (q *qemu) freshFiles() error {
	if q.files.vars != "" {
		_, delivered, err := q.spec.ovmf()
		if err != nil {
			return err
		}
		vars, err := os.ReadFile(delivered)
		if err != nil {
			return fmt.Errorf("UEFI variables: %w", err)
		}
		if err := os.WriteFile(q.files.vars, vars, 0o600); err != nil {
			return fmt.Errorf("UEFI variables: %w", err)
		}
	}
	return markConsole(q.files.console, time.Now())
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

// letGo lets the machine run and sees that it does.
func (r *running) letGo(ctx context.Context) error {
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
	r.during(r.life, func() {
		r.system, r.progress, r.pid = systemGuest, progressFirmware, r.p.cmd.Process.Pid
		r.setPower(model.PowerOn)
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

// ended says why a process is gone that nobody here ended.
func (r *running) ended() string {
	for len(r.p.monitor.events) > 0 {
		r.hear(<-r.p.monitor.events)
	}
	if r.p.err == nil && r.shutdown == "guest-shutdown" {
		r.during(r.life, func() { r.conclude(OutcomeEnded, "") })
		return shutDown
	}
	why := "qemu died: " + r.p.death()
	if r.shutdown != "" {
		why += " (" + r.shutdown + ")"
	}
	r.rack().opts.Log.Warn("qemu died", "server", string(r.name), "err", why)
	r.fail(r.life, why)
	return why
}

// obey carries out an order.
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
	r.complain(ctx, err)
}

// complain notes an error of qemu's, unless it comes of the end.
func (r *running) complain(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, errMonitorGone) {
		return
	}
	r.during(r.life, func() { r.note("qemu: " + err.Error()) })
}

// reorder tells the firmware what to boot from when it starts next.
func (r *running) reorder(ctx context.Context) {
	var order []BootSource
	if !r.during(r.life, func() { order = r.bootOrder() }) {
		return
	}
	r.complain(ctx, r.p.monitor.setBootIndexes(ctx, bootIndexes(order, len(r.spec.Taps), len(r.spec.Disks))))
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

// hear takes in an event.
func (r *running) hear(e monitorEvent) {
	switch e.name {
	case "RESET":
		r.restarted(e.guest)
	case "SHUTDOWN":
		r.shutdown = e.reason
	case "STOP": // qemu pauses a machine whose disk cannot be written
		r.during(r.life, func() { r.setPower(model.PowerPaused) })
	case "RESUME":
		r.during(r.life, func() {
			if r.power == model.PowerPaused {
				r.setPower(model.PowerOn)
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
	r.during(r.life, func() {
		if byGuest {
			r.cause = cause{by: CauseSystem}
			r.logRestart("restarted by its system")
			r.conclude(OutcomeEnded, "")
		}
		r.conclude(OutcomeCut, "")
		if r.qemu.httpOnly() != r.httpOnly {
			r.begin(r.replace)
			return
		}
		r.startBoot()
	})
}

// settle waits for the firmware before the order of the next boot is set: it reads
// the order of this one again when it resets the machine.
func (r *running) settle() { r.settled = time.After(r.delays().Settle) }

// Console is where a machine of qemu writes what its serial port says, "" of a
// pretended one. Without Options.StateDir the file is gone when the rack is.
func (s *Server) Console() string {
	if q, ok := s.machine.(*qemu); ok {
		return q.files.console
	}
	return ""
}

// DiskFiles are the raw disks of a machine of qemu, in the order of its Disks. They
// may be read and written while the machine is off.
func (s *Server) DiskFiles() []string {
	if q, ok := s.machine.(*qemu); ok {
		return slices.Clone(q.files.disks)
	}
	return nil
}

// PID is the process of a machine of qemu that is on, 0 of others.
func (s *Server) PID() int {
	q, ok := s.machine.(*qemu)
	if !ok {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.pid
}

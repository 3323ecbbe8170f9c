package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Waits of the worker.
const (
	longestProbeWait = 20 * time.Second // between attempts, as a service manager would
	endIn            = 10 * time.Second // that the probe has to end its work
)

// Probe runs metalprobe with flags as on its command line, until it is done or ctx
// ends.
type Probe func(ctx context.Context, flags []string, log *slog.Logger) error

// ErrPowerOff is returned by a probe whose machine is not needed any more.
var ErrPowerOff = errors.New("the machine is to be powered off")

// errRestart is why work ends when the machine is to start anew.
var errRestart = errors.New("restart")

// Run is the worker: it does what the Ignition tells the probe to do, until the
// machine is to be powered off or restarted, which it asks the first process to do.
// Its error means that the machine cannot be used at all.
func Run(probe Probe) error {
	log := newLog(os.Stderr)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)

	command, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return fmt.Errorf("read the kernel's command line: %w", err)
	}
	told := parseCommandLine(string(command))
	product, _ := os.ReadFile("/sys/class/dmi/id/product_uuid") // a machine without SMBIOS has none
	id := &identity{uuid: parseUUID(strings.TrimSpace(string(product))), bootMAC: told.bootMAC, hasURL: told.ignitionURL != ""}
	log.Info("machine", "uuid", id.uuid, "ignition", ignitionSource(told))
	if told.ip != "" {
		log.Warn("ip= on the kernel's command line is not heeded: addresses come from DHCP and routers", "ip", told.ip)
	}
	hardware, err := newDrivers(told.modules, log)
	if err != nil {
		return err
	}
	reach := newWays("/etc/resolv.conf")
	m := &worker{
		probe: probe, log: log, hardware: hardware, ways: reach,
		seeker: &seeker{url: told.ignitionURL, ways: reach, get: get, log: log},
	}
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := hardware.run(ctx); err != nil {
			log.Error("drivers are not loaded any more", "err", err)
		}
	})
	parts.Go(func() { _ = (&network{id: id, ways: reach, log: log}).run(ctx) })
	parts.Go(func() {
		if awaitPowerButton(ctx, log) {
			stop(nil)
		}
	})
	parts.Go(func() { awaitSignal(ctx, stop) })
	parts.Go(func() {
		if m.run(ctx) {
			stop(nil)
		}
	})
	<-ctx.Done()
	waitFor(&parts, endIn)
	if errors.Is(context.Cause(ctx), errRestart) {
		log.Info("machine restarts")
		return ask(os.Stderr, orderRestart)
	}
	log.Info("machine is powered off")
	return ask(os.Stderr, orderPowerOff)
}

// ignitionSource says where the Ignition is to come from.
func ignitionSource(c commandLine) string {
	if c.ignitionURL == "" {
		return "DHCP"
	}
	return hostOf(c.ignitionURL)
}

// awaitSignal ends the work when the first process hands on a signal: SIGTERM to
// power off, SIGINT (Ctrl-Alt-Del) to restart.
func awaitSignal(ctx context.Context, stop context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	defer signal.Stop(signals)
	select {
	case <-ctx.Done():
	case s := <-signals:
		if s == unix.SIGINT {
			stop(errRestart)
		}
		stop(nil)
	}
}

// waitFor waits for goroutines, but not for ever: a disk may hang in the kernel.
func waitFor(parts *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() {
		parts.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// worker runs the probe.
type worker struct {
	probe    Probe
	hardware interface{ settle(context.Context) }
	seeker   *seeker
	ways     *ways
	log      *slog.Logger
}

// run does what the Ignition says, and again when that failed, until ctx ends. It
// reports whether the machine is not needed any more. A probe that is done and says
// nothing of that leaves the machine on: who started it powers it off.
func (m *worker) run(ctx context.Context) (powerOff bool) {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, longestProbeWait) {
		err := m.once(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, ErrPowerOff):
			return true
		case err == nil:
			m.log.Info("probe is done; this machine waits to be powered off")
			return false
		}
		m.log.Error("probe has failed", "again", wait, "err", err)
		pause(ctx, wait)
	}
	return false
}

func (m *worker) once(ctx context.Context) error {
	f, err := m.seeker.seek(ctx)
	if err != nil {
		return err
	}
	if err := m.ways.choose(f.way); err != nil {
		m.log.Warn("routes are not as they should be", "err", err)
	}
	flags, err := probeFlags(f.content)
	if err != nil {
		return err
	}
	m.log.Info("Ignition is fetched", "interface", f.way.nic, "bytes", len(f.content))
	m.hardware.settle(ctx)
	return m.probe(ctx, flags, m.log)
}

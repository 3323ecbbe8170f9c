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

const (
	maxProbeWait = 20 * time.Second // between two attempts, as a service manager has it
	endIn        = 10 * time.Second // how long the probe has to end its work
)

// Probe runs metalprobe with flags as on its command line, until it is done or ctx
// ends.
type Probe func(ctx context.Context, flags []string, log *slog.Logger) error

// ErrPowerOff is returned by a probe whose machine is no longer needed.
var ErrPowerOff = errors.New("the machine is to be powered off")

// errRestart is the cause of the end of work when the machine is to restart.
var errRestart = errors.New("restart")

// Run is the worker: it runs the probe as the Ignition says, until the machine is to be
// powered off or restarted, which it asks the first process to do. Its error means that
// the machine cannot be used at all.
func Run(probe Probe) error {
	log := newLog(os.Stderr)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)

	command, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return fmt.Errorf("read the kernel's command line: %w", err)
	}
	cmdline := parseCommandLine(string(command))
	product, _ := os.ReadFile("/sys/class/dmi/id/product_uuid") // a machine without SMBIOS has none
	id := &identity{uuid: parseUUID(strings.TrimSpace(string(product))), bootMAC: cmdline.bootMAC, hasURL: cmdline.ignitionURL != ""}
	log.Info("machine", "uuid", id.uuid, "ignition", ignitionSource(cmdline))
	if cmdline.ip != "" {
		log.Warn("ip= on the kernel's command line is ignored: addresses come from DHCP and routers", "ip", cmdline.ip)
	}
	hardware, err := newDrivers(cmdline.modules, log)
	if err != nil {
		return err
	}
	links := newUplinks("/etc/resolv.conf")
	m := &worker{
		probe: probe, log: log, hardware: hardware, uplinks: links,
		seeker: &seeker{url: cmdline.ignitionURL, uplinks: links, get: get, log: log},
	}
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := hardware.run(ctx); err != nil {
			log.Error("drivers are no longer loaded", "err", err)
		}
	})
	parts.Go(func() { _ = (&network{id: id, uplinks: links, log: log}).run(ctx) })
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

// ignitionSource names the source of the Ignition, for the log.
func ignitionSource(c commandLine) string {
	if c.ignitionURL == "" {
		return "DHCP"
	}
	return hostOf(c.ignitionURL)
}

// awaitSignal ends the work when the first process passes on a signal: SIGTERM to
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

type worker struct {
	probe    Probe
	hardware interface{ settle(context.Context) }
	seeker   *seeker
	uplinks  *uplinks
	log      *slog.Logger
}

// run does what the Ignition says, and retries after a failure, until ctx ends. It
// reports whether the machine is to be powered off. A probe that has finished and does
// not ask for that leaves the machine on: whoever powered it on powers it off.
func (m *worker) run(ctx context.Context) (powerOff bool) {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, maxProbeWait) {
		err := m.once(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case errors.Is(err, ErrPowerOff):
			return true
		case err == nil:
			m.log.Info("probe has finished; this machine waits to be powered off")
			return false
		}
		m.log.Error("probe has failed", "retryIn", wait, "err", err)
		pause(ctx, wait)
	}
	return false
}

func (m *worker) once(ctx context.Context) error {
	f, err := m.seeker.seek(ctx)
	if err != nil {
		return err
	}
	if err := m.uplinks.choose(f.uplink); err != nil {
		m.log.Warn("routes cannot be set", "err", err)
	}
	flags, err := probeFlags(f.content)
	if err != nil {
		return err
	}
	m.log.Info("Ignition is fetched", "interface", f.uplink.nic, "bytes", len(f.content))
	m.hardware.settle(ctx)
	return m.probe(ctx, flags, m.log)
}

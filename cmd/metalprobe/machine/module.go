package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/modules"
)

// Limits on the search for hardware.
const (
	maxLoading = 16                     // modules that are loaded at a time
	quiet      = 300 * time.Millisecond // without new hardware, after which all is taken to be found
	settleFor  = time.Minute            // a controller that takes longer is faulty
)

// drivers loads kernel modules. It is safe for concurrent use.
type drivers struct {
	index  modules.Index
	params map[string]string // by module
	insert func(name, params string) error
	log    *slog.Logger

	mu     sync.Mutex
	loaded map[string]*loading

	busy atomic.Int64 // modules that are being loaded
	last atomic.Int64 // when hardware last appeared, in Unix nanoseconds
}

type loading struct {
	once sync.Once
	err  error
}

// newDrivers returns the drivers of this initramfs. If it has no index, all drivers are
// built into the kernel.
func newDrivers(params map[string]string, log *slog.Logger) (*drivers, error) {
	d := &drivers{params: params, insert: insertModule, log: log, loaded: make(map[string]*loading)}
	f, err := os.Open(modules.IndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d.index, err = modules.Parse(f)
	return d, err
}

// insertModule loads a module's file into the kernel.
func insertModule(name, params string) error {
	f, err := os.Open(filepath.Join(modules.Folder, name+".ko"))
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), params, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// load loads a module after those that it depends on. Each is tried once.
func (d *drivers) load(name string) error {
	for _, needed := range d.index.Modules[name] {
		if err := d.loadOne(needed); err != nil {
			return fmt.Errorf("%s, which %s needs: %w", needed, name, err)
		}
	}
	return d.loadOne(name)
}

func (d *drivers) loadOne(name string) error {
	d.mu.Lock()
	l := d.loaded[name]
	if l == nil {
		l = &loading{}
		d.loaded[name] = l
	}
	d.mu.Unlock()
	l.once.Do(func() {
		d.busy.Add(1)
		defer d.busy.Add(-1)
		l.err = d.insert(name, d.parameters(name))
		d.last.Store(time.Now().UnixNano())
		d.log.Debug("module is loaded", "module", name, "err", l.err)
	})
	return l.err
}

// ownParams are parameters of modules, by module. With scan=sync a controller's module
// counts as loaded only when its disks were found, so that none is missed; and with
// ignore_hpa=1 a SATA disk shows its host protected area, so that it is wiped.
var ownParams = map[string]string{"scsi_mod": "scan=sync", "libata": "ignore_hpa=1"}

// parameters returns a module's parameters. Those of the command line come last, so
// that they win.
func (d *drivers) parameters(name string) string {
	return strings.TrimSpace(ownParams[name] + " " + d.params[name])
}

// want loads the modules for a modalias or name. A driver that cannot be loaded is only
// logged, because the machine may do without it.
func (d *drivers) want(wanted string) {
	for _, name := range d.index.For(wanted) {
		if err := d.load(name); err != nil && !errors.Is(err, unix.ENODEV) {
			d.log.Warn("driver cannot be loaded", "module", name, "for", wanted, "err", err)
		}
	}
}

// run loads drivers for the hardware that is there, and then for what the kernel
// announces, until ctx ends.
func (d *drivers) run(ctx context.Context) error {
	d.last.Store(time.Now().UnixNano())
	events, err := listenForDevices()
	if err != nil {
		return fmt.Errorf("listen for devices: %w", err)
	}
	defer unix.Close(events)
	var group errgroup.Group
	group.SetLimit(maxLoading)
	d.search(&group)
	buffer := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(events, buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // the socket's time limit
		case errors.Is(err, unix.ENOBUFS): // events were lost
			d.search(&group)
		case err != nil:
			return fmt.Errorf("listen for devices: %w", err)
		default:
			if wanted, ok := added(string(buffer[:n])); ok {
				d.last.Store(time.Now().UnixNano())
				if wanted != "" {
					group.Go(func() error { d.want(wanted); return nil })
				}
			}
		}
	}
	return group.Wait()
}

func (d *drivers) search(group *errgroup.Group) {
	seen := make(map[string]bool)
	_ = filepath.WalkDir("/sys/devices", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "modalias" {
			return nil // devices come and go
		}
		text, err := os.ReadFile(path)
		wanted := strings.TrimSpace(string(text))
		if err == nil && wanted != "" && !seen[wanted] {
			seen[wanted] = true
			group.Go(func() error { d.want(wanted); return nil })
		}
		return nil
	})
}

// listenForDevices opens a socket on which the kernel announces devices.
func listenForDevices() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20) // without it events may be lost, which is noticed
	second := unix.Timeval{Sec: 1}
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second),
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}),
	)
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// added reports whether a message of the kernel announces a new device, and returns the
// device's modalias, "" for one that needs no driver.
func added(message string) (modalias string, ok bool) {
	for field := range strings.SplitSeq(message, "\x00") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "ACTION":
			ok = value == "add"
		case "MODALIAS":
			modalias = value
		}
	}
	return modalias, ok
}

// settle waits until no more hardware appears, but at most for as long as a sound
// machine needs.
func (d *drivers) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for d.busy.Load() > 0 || time.Since(time.Unix(0, d.last.Load())) < quiet {
		select {
		case <-ctx.Done():
			d.log.Warn("hardware is still appearing: disks may be missing", "waited", settleFor)
			return
		case <-time.After(quiet / 6):
		}
	}
}

// Modprobe does for the kernel what modprobe(8) does: it loads the modules that its
// arguments name; options are ignored.
func Modprobe(args []string) error {
	command, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	d, err := newDrivers(parseCommandLine(string(command)).modules, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for _, wanted := range args {
		if strings.HasPrefix(wanted, "-") {
			continue
		}
		names := d.index.For(wanted)
		if len(names) == 0 {
			return fmt.Errorf("%s is not known", wanted)
		}
		for _, name := range names {
			if err := d.load(name); err != nil {
				return err
			}
		}
	}
	return nil
}

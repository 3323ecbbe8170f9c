package machine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxConsoles and consoleLines bound the output that waits for slow consoles.
const (
	maxConsoles  = 8
	consoleLines = 512
)

// consoles are the terminals that the kernel writes to. /dev/console is only the last of
// them, and people may look at any.
type consoles []chan output

// output is what waits for a console: a line, or a request to report when everything
// before it is shown.
type output struct {
	line  string
	shown chan<- struct{}
}

// terminal is the device that a console writes to.
type terminal interface {
	io.Writer
	// Drain waits until all output was sent.
	Drain()
}

// tty is a terminal device of the kernel.
type tty struct{ *os.File }

// Drain implements terminal, as tcdrain(3) does: a serial line is slow.
func (t tty) Drain() {
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCSBRK, 1) })
}

// openConsoles opens the terminals that the kernel writes to.
func openConsoles() consoles {
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	names := strings.Fields(string(active))
	if len(names) == 0 {
		names = []string{"console"}
	}
	var c consoles
	for _, name := range names[:min(len(names), maxConsoles)] {
		f, err := os.OpenFile(filepath.Join("/dev", filepath.Base(name)), os.O_WRONLY|unix.O_NOCTTY, 0)
		if err != nil {
			continue // named on the kernel's command line, but absent
		}
		c = append(c, newConsole(tty{f}))
	}
	return c
}

// newConsole writes to a terminal for as long as the machine is on.
func newConsole(t terminal) chan output {
	waiting := make(chan output, consoleLines)
	go func() {
		for o := range waiting {
			if o.shown != nil {
				t.Drain()
				o.shown <- struct{}{}
				continue
			}
			io.WriteString(t, o.line)
		}
	}()
	return waiting
}

// print writes a line with the time since the kernel started. It never blocks: a console
// that does not keep up misses lines.
func (c consoles) print(line string) {
	line = fmt.Sprintf("[%9.3f] %s\n", sinceBoot().Seconds(), line)
	for _, waiting := range c {
		select {
		case waiting <- output{line: line}:
		default:
		}
	}
}

// drain waits until all consoles show what was printed, but not for longer than limit:
// the other end of a serial line may hold it up.
func (c consoles) drain(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	shown := make(chan struct{}, len(c))
	for _, waiting := range c {
		select {
		case waiting <- output{shown: shown}:
		case <-late.C:
			return
		}
	}
	for range c {
		select {
		case <-shown:
		case <-late.C:
			return
		}
	}
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// lines is a slog handler for consoles: the message, then its fields. Time and level
// are left out, except for levels that a person has to look at.
type lines struct {
	w     io.Writer
	attrs []slog.Attr
}

func newLog(w io.Writer) *slog.Logger { return slog.New(lines{w: w}) }

// Enabled leaves out debug records.
func (h lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle writes one line at once.
func (h lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if r.Level >= slog.LevelWarn {
		b.WriteString(r.Level.String() + " ")
	}
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		value := a.Value.Resolve().String()
		if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }) {
			value = strconv.Quote(value)
		}
		b.WriteString(" " + a.Key + "=" + value)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	_, err := io.WriteString(h.w, b.String()+"\n")
	return err
}

// WithAttrs keeps fields for every line.
func (h lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(slices.Clip(h.attrs), attrs...)
	return h
}

// WithGroup does nothing: no logger here has groups.
func (h lines) WithGroup(string) slog.Handler { return h }

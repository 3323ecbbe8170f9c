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

// maxConsoles and consoleLines bound what waits for consoles that are slow.
const (
	maxConsoles  = 8
	consoleLines = 512
)

// consoles are the terminals that the kernel was told to write to. /dev/console is
// only the last of them, and people look at any.
type consoles []chan string

// openConsoles opens the terminals that the kernel writes to.
func openConsoles() consoles {
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	names := strings.Fields(string(active))
	if len(names) == 0 {
		names = []string{"console"}
	}
	var c consoles
	for _, name := range names[:min(len(names), maxConsoles)] {
		tty, err := os.OpenFile(filepath.Join("/dev", filepath.Base(name)), os.O_WRONLY|unix.O_NOCTTY, 0)
		if err != nil {
			continue // told of in the kernel's command line, and not there
		}
		waiting := make(chan string, consoleLines)
		c = append(c, waiting)
		go func() { // as long as the machine is on
			for line := range waiting {
				io.WriteString(tty, line)
			}
		}()
	}
	return c
}

// print writes a line with the time since the kernel started. A console that does
// not keep up misses lines: nothing waits for it.
func (c consoles) print(line string) {
	line = fmt.Sprintf("[%9.3f] %s\n", sinceBoot().Seconds(), line)
	for _, waiting := range c {
		select {
		case waiting <- line:
		default:
		}
	}
}

// drain gives consoles time to write what waits.
func (c consoles) drain(limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		n := 0
		for _, waiting := range c {
			n += len(waiting)
		}
		if n == 0 {
			break
		}
	}
	time.Sleep(50 * time.Millisecond) // the line that is being written
}

// sinceBoot is the time since the kernel started.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// lines is a slog handler for consoles: the message, then what there is to know of
// it. Time and level are left out, but for what a person has to look at.
type lines struct {
	w     io.Writer
	attrs []slog.Attr
}

// newLog returns a logger that writes short lines.
func newLog(w io.Writer) *slog.Logger { return slog.New(lines{w: w}) }

// Enabled leaves out what only explains.
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

// WithAttrs keeps what is said with every line.
func (h lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(slices.Clip(h.attrs), attrs...)
	return h
}

// WithGroup is not needed here: keys stay as they are.
func (h lines) WithGroup(string) slog.Handler { return h }

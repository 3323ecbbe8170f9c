package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ingot/model/must"
)

// tick is the unit of CPU time in /proc: 1/100 s on every Linux (proc(5), sysconf
// _SC_CLK_TCK).
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time that a process has used, in user and kernel mode,
// with that of its children that have ended: fetching from a folder runs git.
func cpuOf(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(tb)
	// the second field is a name in brackets, which may hold anything
	_, rest, ok := bytes.Cut(raw, []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 15 {
		tb.Fatalf("/proc/%d/stat reads %q", pid, raw)
	}
	var ticks int64
	for _, field := range fields[11:15] { // utime stime cutime cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			tb.Fatalf("/proc/%d/stat reads %q", pid, raw)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// memory is a process's resident memory, in bytes.
type memory struct {
	now, peak int64
	files     int64 // of now, pages of files: the program itself and the store
}

func memoryOf(tb testing.TB, pid int) memory {
	tb.Helper()
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(tb)
	var m memory
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.now = kilobytes << 10
		case "VmHWM":
			m.peak = kilobytes << 10
		case "RssFile":
			m.files = kilobytes << 10
		}
	}
	return m
}

package qemu_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/bmc/sim/qemu"
)

// The variables of the environment that make this test program a qemu: how it
// behaves, and where it writes what it is told.
const (
	fakeQEMUMode = "INGOT_SIM_FAKE_QEMU"
	fakeQEMULog  = "INGOT_SIM_FAKE_QEMU_LOG"
)

// How a guest takes the power button, and a qemu its start or its end.
const (
	guestDeaf     = "deaf"
	guestEnds     = "ends"
	guestRestarts = "restarts"
	diskFull      = "disk full"
	noTap         = "no tap"
	neverQuits    = "never quits"
)

func fakeQEMU(how string) int {
	if how == noTap {
		fmt.Fprintln(os.Stderr, "qemu: warning: something else\nqemu: could not configure /dev/net/tun (tap0): Device or resource busy")
		return 1
	}
	log, err := os.OpenFile(os.Getenv(fakeQEMULog), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(log, "start", strings.Join(os.Args[1:], " "))
	monitor := os.NewFile(3, "monitor")
	say := func(line string) { fmt.Fprintln(monitor, line) }
	say(`{"QMP": {"version": {}, "capabilities": []}}`)
	for lines := bufio.NewScanner(monitor); lines.Scan(); {
		var c struct {
			Execute   string
			Arguments json.RawMessage
			ID        int
		}
		if json.Unmarshal(lines.Bytes(), &c) != nil {
			return 2
		}
		fmt.Fprintln(log, strings.TrimSpace(c.Execute+" "+string(c.Arguments)))
		result, events, ends := fakeCommand(c.Execute, how)
		for _, e := range events {
			say(e)
		}
		say(fmt.Sprintf(`{"return": %s, "id": %d}`, result, c.ID))
		if ends {
			time.Sleep(20 * time.Millisecond) // it has files to close
			fmt.Fprintln(log, "end")
			return 0
		}
	}
	return 0
}

func fakeCommand(command, how string) (result string, events []string, ends bool) {
	const guestReset = `{"event": "RESET", "data": {"guest": true, "reason": "guest-reset"}}`
	result = "{}"
	switch command {
	case "query-status":
		result = `{"status": "running"}`
	case "system_reset": // SeaBIOS resets once more
		events = []string{`{"event": "RESET", "data": {"guest": false, "reason": "host-qmp-system-reset"}}`, guestReset}
	case "system_powerdown":
		switch how {
		case guestEnds:
			return result, []string{`{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}`}, true
		case guestRestarts:
			events = []string{guestReset}
		case diskFull:
			events = []string{`{"event": "STOP"}`}
		}
	case "quit":
		if how == neverQuits {
			time.Sleep(time.Hour)
		}
		return result, []string{`{"event": "SHUTDOWN", "data": {"guest": false, "reason": "host-qmp-quit"}}`}, true
	}
	return result, events, false
}

// faked is a machine of a qemu that behaves as said, and a reader of what it is
// told.
func faked(t *testing.T, how string, m qemu.Machine) (*sim.Server, func() []string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(fakeQEMUMode, how)
	t.Setenv(fakeQEMULog, dir+"/told")
	m.Command = []string{os.Args[0]}
	if m.Disks == nil {
		m.Disks = []qemu.Disk{{Bus: qemu.DiskVirtio, SizeMiB: 1}}
	}
	rack := simtest.Start(t, sim.Options{Machines: qemu.Machines{m}, StateDir: dir, Delays: sim.Delays{Settle: 30 * time.Millisecond}})
	return rack.Servers()[0], func() []string {
		raw, err := os.ReadFile(dir + "/told")
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has not been started yet
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
}

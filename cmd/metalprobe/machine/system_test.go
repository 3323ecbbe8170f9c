package machine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestPowerPressed(t *testing.T) {
	event := func(kind, code uint16, value uint32) []byte {
		b := make([]byte, 16)
		b = binary.NativeEndian.AppendUint16(b, kind)
		b = binary.NativeEndian.AppendUint16(b, code)
		return binary.NativeEndian.AppendUint32(b, value)
	}
	for title, tc := range map[string]struct {
		event []byte
		want  bool
	}{
		"the power key goes down": {event(1, 116, 1), true},
		"the power key goes up":   {event(1, 116, 0), false},
		"another key":             {event(1, 30, 1), false},
		"no key":                  {event(0, 116, 1), false},
		"half an event":           {event(1, 116, 1)[:20], false},
	} {
		if got := powerPressed(tc.event); got != tc.want {
			t.Errorf("%s: %v", title, got)
		}
	}
}

func TestWhatIsDoneAboutAWorkerThatEnds(t *testing.T) {
	for title, tc := range map[string]struct {
		status unix.WaitStatus // exit code in the second byte, signal in the first
		want   remedy
	}{
		"it says what is wrong":       {1 << 8, retry},
		"it panics":                   {2 << 8, reboot},
		"it is killed":                {9, reboot},
		"it ends, which it never may": {0, reboot},
	} {
		if got := remedyFor(tc.status); got != tc.want {
			t.Errorf("%s: %d, want %d", title, got, tc.want)
		}
	}
}

func TestAdviceOfRouters(t *testing.T) {
	attr := func(kind uint16, value uint32) []byte {
		b := binary.NativeEndian.AppendUint16(nil, 8)
		b = binary.NativeEndian.AppendUint16(b, kind)
		return binary.NativeEndian.AppendUint32(b, value)
	}
	for title, tc := range map[string]struct {
		nested []byte
		want   raFlags
	}{
		"addresses by DHCPv6":      {attr(1, 0x80000040), raFlags{managed: true}},
		"facts by DHCPv6":          {append(attr(7, 1), attr(1, 0x80000090)...), raFlags{other: true}},
		"no router yet":            {attr(1, 0x80000010), raFlags{}},
		"an attribute of no bytes": {[]byte{0, 0, 0, 0, 1, 2}, raFlags{}},
		"one that is cut off":      {attr(1, 0x40)[:6], raFlags{}},
		"nothing":                  {nil, raFlags{}},
	} {
		if got := parseRAFlags(tc.nested); got != tc.want {
			t.Errorf("%s: %+v", title, got)
		}
	}
}

// slowLine is a terminal that takes a second for each line.
type slowLine struct {
	mu    sync.Mutex
	shown []string
	queue []string
	stuck bool
}

func (l *slowLine) Write(p []byte) (int, error) {
	_, line, _ := strings.Cut(string(p), "] ")
	l.queue = append(l.queue, strings.TrimSpace(line))
	return len(p), nil
}

func (l *slowLine) Drain() {
	if l.stuck {
		time.Sleep(time.Hour)
	}
	time.Sleep(time.Duration(len(l.queue)) * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown, l.queue = append(l.shown, l.queue...), nil
}

func (l *slowLine) seen() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.shown, " ")
}

func TestConsolesAreWaitedForAndNotForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, stuck := &slowLine{}, &slowLine{stuck: true}
		for title, tc := range map[string]struct {
			screen consoles
			took   time.Duration
			shown  string
		}{
			"a slow line":         {consoles{newConsole(slow)}, 3 * time.Second, "a b c"},
			"a line that is held": {consoles{newConsole(stuck)}, 10 * time.Second, ""},
		} {
			for _, line := range []string{"a", "b", "c"} {
				tc.screen.print(line)
			}
			began := time.Now()
			tc.screen.drain(10 * time.Second)
			if took := time.Since(began); took != tc.took {
				t.Errorf("%s: took %v, want %v", title, took, tc.took)
			}
			if tc.shown != "" && slow.seen() != tc.shown {
				t.Errorf("%s: shows %q, want %q", title, slow.seen(), tc.shown)
			}
			close(tc.screen[0])
		}
		time.Sleep(2 * time.Hour) // the line that is held ends, too
	})
}

func TestOrdersOfTheWorker(t *testing.T) {
	for title, tc := range map[string]struct {
		said string
		want order
	}{
		"it ends the machine":         {"machine is powered off\n\x00power off\n", orderPowerOff},
		"it starts the machine again": {"\x00restart\n", orderRestart},
		"it ends without a word":      {"probe has failed\n", ""},
		"somebody else's words":       {"power off\n answered \"\\x00restart\"\n", ""},
		"half an order":               {"\x00power\n", ""},
	} {
		if got := printLines(strings.NewReader(tc.said), nil); got != tc.want {
			t.Errorf("%s: %q, want %q", title, got, tc.want)
		}
	}
	var log bytes.Buffer
	newLog(&log).Info("hostile", "err", "\x00restart", "err", "a\n\x00restart\n")
	if got := printLines(&log, nil); got != "" {
		t.Errorf("a log gave the order %q", got)
	}
}

type ready struct{}

func (ready) settle(context.Context) {}

func TestWhatAProbesEndMeans(t *testing.T) {
	for title, tc := range map[string]struct {
		err      error
		powerOff bool
		runs     int
	}{
		"the machine is not needed any more": {ErrPowerOff, true, 1},
		"somebody else powers it off":        {nil, false, 1},
		"it failed, and is run again":        {errors.New("no registry"), false, 5},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				reach := newUplinks(t.TempDir() + "/resolv.conf")
				reach.add(uplink{nic: "eth0", family: 4, url: "http://h/i", preferred: true}, nil, nil)
				m := &worker{
					hardware: ready{}, uplinks: reach, log: slog.New(slog.DiscardHandler),
					probe: func(context.Context, []string, *slog.Logger) error { runs++; return tc.err },
					seeker: &seeker{
						uplinks: reach, log: slog.New(slog.DiscardHandler),
						get: func(context.Context, uplink, string) ([]byte, error) {
							return []byte(config("[Service]\nExecStart=/usr/bin/metalprobe --a\n")), nil
						},
					},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if got := m.run(ctx); got != tc.powerOff || runs != tc.runs {
					t.Errorf("power off %v after %d runs, want %v after %d", got, runs, tc.powerOff, tc.runs)
				}
			})
		})
	}
}

func TestParseRouter6(t *testing.T) {
	const gateway = "fe80000000000000505400fffe123456"
	all := strings.Repeat("0", 32)
	route := func(to, bits, gateway, flags, nic string) string {
		return strings.Join([]string{to, bits, all, "00", gateway, "00000400", "00000001", "00000000", flags, nic}, " ")
	}
	for title, tc := range map[string]struct {
		line string
		want string
	}{
		"a router of the card's":     {route(all, "00", gateway, "00450003", "eth0"), "fe80::5054:ff:fe12:3456"},
		"one of another card's":      {route(all, "00", gateway, "00450003", "eth1"), ""},
		"a route to a network":       {route("fd00"+all[4:], "40", gateway, "00450003", "eth0"), ""},
		"a route without a gateway":  {route(all, "00", all, "00000001", "eth0"), ""},
		"what refuses to be reached": {route(all, "00", gateway, "00200200", "eth0"), ""},
		"half a line":                {all + " 00", ""},
	} {
		got, ok := parseRouter6(tc.line, "eth0")
		if ok != (tc.want != "") || ok && got.String() != tc.want {
			t.Errorf("%s: %v %v, want %q", title, got, ok, tc.want)
		}
	}
}

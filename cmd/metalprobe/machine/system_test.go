package machine

import (
	"encoding/binary"
	"testing"

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
		want   advice
	}{
		"addresses by DHCPv6":      {attr(1, 0x80000040), advice{managed: true}},
		"facts by DHCPv6":          {append(attr(7, 1), attr(1, 0x80000090)...), advice{other: true}},
		"no router yet":            {attr(1, 0x80000010), advice{}},
		"an attribute of no bytes": {[]byte{0, 0, 0, 0, 1, 2}, advice{}},
		"one that is cut off":      {attr(1, 0x40)[:6], advice{}},
		"nothing":                  {nil, advice{}},
	} {
		if got := parseAdvice(tc.nested); got != tc.want {
			t.Errorf("%s: %+v", title, got)
		}
	}
}

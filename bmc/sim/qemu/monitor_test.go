package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// otherEnd is a qemu's end of a monitor.
type otherEnd struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
}

func newOtherEnd(t *testing.T) (*monitor, *otherEnd) {
	ours, theirs := net.Pipe()
	m := newMonitor(ours)
	t.Cleanup(func() {
		theirs.Close()
		m.close()
	})
	return m, &otherEnd{t, theirs, bufio.NewScanner(theirs)}
}

func (o *otherEnd) say(line string) {
	if _, err := o.conn.Write([]byte(line + "\n")); err != nil {
		o.t.Error(err)
	}
}

func (o *otherEnd) hears() (command string, id int) {
	var c struct {
		Execute   string
		Arguments json.RawMessage
		ID        int
	}
	if !o.lines.Scan() || json.Unmarshal(o.lines.Bytes(), &c) != nil {
		o.t.Errorf("that is no command: %s", o.lines.Text())
	}
	return strings.TrimSpace(c.Execute + " " + string(c.Arguments)), c.ID
}

const greeting = `{"QMP": {"version": {}, "capabilities": ["oob"]}}`

func TestAMonitorIsNegotiatedAfterTheGreeting(t *testing.T) {
	m, qemu := newOtherEnd(t)
	negotiated := make(chan error, 1)
	go func() { negotiated <- m.negotiate(t.Context()) }()
	qemu.say(greeting)
	if command, _ := qemu.hears(); command != "qmp_capabilities" {
		t.Errorf("command %s", command)
	}
	qemu.say(`{"return": {}, "id": 1}`)
	if err := <-negotiated; err != nil {
		t.Error(err)
	}
}

func TestAnAnswerIsThatOfItsCommand(t *testing.T) {
	m, qemu := newOtherEnd(t)
	go func() {
		command, id := qemu.hears()
		if command != `query-status {"x":1}` || id != 1 {
			t.Errorf("command %s with number %d", command, id)
		}
		qemu.say(`{"event": "RESET", "data": {"guest": true, "reason": "guest-reset"}}`)
		qemu.say(`{"return": {"status": "of another"}, "id": 99}`)
		qemu.say(`{"return": {"status": "running"}, "id": 1}`)
	}()
	got, err := m.ask(t.Context(), "query-status", map[string]int{"x": 1})
	if err != nil || string(got) != `{"status": "running"}` {
		t.Errorf("got %s, %v", got, err)
	}
	want := monitorEvent{name: "RESET", guest: true, reason: "guest-reset"}
	if diff := cmp.Diff(want, <-m.events, cmp.AllowUnexported(monitorEvent{})); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestAMonitorSaysWhyACommandFails(t *testing.T) {
	tests := []struct{ name, says, want string }{
		{"qemu refuses", `{"error": {"class": "GenericError", "desc": "no such device"}, "id": 1}`, "qom-set: no such device"},
		{"qemu talks nonsense", `nonsense`, errMonitorGone.Error()},
		{"qemu never ends a line", strings.Repeat("x", maxMonitorLine+1), errMonitorGone.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, qemu := newOtherEnd(t)
			go func() {
				qemu.hears()
				_, _ = qemu.conn.Write([]byte(tt.says + "\n")) // the reader may give up before its end
			}()
			if err := m.do(t.Context(), "qom-set", nil); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			qemu.conn.Close()
		})
	}
	t.Run("qemu goes", func(t *testing.T) {
		m, qemu := newOtherEnd(t)
		go func() {
			qemu.hears()
			qemu.conn.Close()
		}()
		if err := m.do(t.Context(), "quit", nil); !errors.Is(err, errMonitorGone) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("qemu is silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, qemu := newOtherEnd(t)
			go qemu.hears()
			if err := m.do(t.Context(), "cont", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			if len(m.waiting) != 0 {
				t.Error("it waits on")
			}
		})
	})
	t.Run("qemu does not greet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, _ := newOtherEnd(t)
			if err := m.negotiate(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	})
}

func TestEventsThatNobodyHearsAreLost(t *testing.T) {
	m, qemu := newOtherEnd(t)
	for range 2 * monitorEvents {
		qemu.say(`{"event": "RTC_CHANGE"}`)
	}
	go func() {
		_, _ = qemu.hears()
		qemu.say(`{"return": {}, "id": 1}`)
	}()
	must.Do(t, m.do(t.Context(), "cont", nil))
	if len(m.events) != monitorEvents {
		t.Errorf("%d events wait", len(m.events))
	}
}

func TestNoTwoDevicesHaveTheSamePlaceEvenForAMoment(t *testing.T) {
	m, qemu := newOtherEnd(t)
	heard := make(chan []string)
	go func() {
		var commands []string
		for id := range 5 {
			command, _ := qemu.hears()
			commands = append(commands, command)
			qemu.say(`{"return": {}, "id": ` + string(rune('1'+id)) + `}`)
		}
		heard <- commands
	}()
	must.Do(t, m.setBootIndexes(t.Context(), []bootIndex{{"nic0", 2}, {"nic1", -1}, {"disk0", 1}}))
	set := func(device, value string) string {
		return `qom-set {"path":"/machine/peripheral/` + device + `","property":"bootindex","value":` + value + `}`
	}
	want := []string{set("nic0", "-1"), set("nic1", "-1"), set("disk0", "-1"), set("nic0", "2"), set("disk0", "1")}
	if diff := cmp.Diff(want, <-heard); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

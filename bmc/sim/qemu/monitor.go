package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Bounds of a monitor: of a line in bytes, of a command's answer in time, and of
// the events that wait to be heard.
const (
	maxMonitorLine = 1 << 20
	monitorTimeout = 10 * time.Second
	monitorEvents  = 64
)

// monitor speaks QMP with a QEMU process: one JSON object a line, in each direction.
type monitor struct {
	conn    net.Conn
	events  chan monitorEvent // those that nobody hears in time are lost
	greeted chan struct{}     // closed when qemu is ready to negotiate
	done    chan struct{}     // closed when the other end is gone

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan monitorMessage
}

// monitorEvent is what happens to a machine.
type monitorEvent struct {
	name   string // RESET, SHUTDOWN, STOP, RESUME …
	guest  bool   // the guest did it
	reason string // guest-reset, host-qmp-quit …
}

// monitorMessage is anything that qemu sends.
type monitorMessage struct {
	Greeting json.RawMessage `json:"QMP"`
	Event    string          `json:"event"`
	Data     struct {
		Guest  bool   `json:"guest"`
		Reason string `json:"reason"`
	} `json:"data"`
	ID     int             `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *monitorError   `json:"error"`
}

// monitorError is QEMU's refusal of a command.
type monitorError struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

// Error implements error.
func (e *monitorError) Error() string { return e.Desc }

// errMonitorGone is the answer to a command once qemu has closed its end.
var errMonitorGone = errors.New("qemu has closed its monitor")

// newMonitor speaks over conn until close.
func newMonitor(conn net.Conn) *monitor {
	m := &monitor{
		conn: conn, events: make(chan monitorEvent, monitorEvents),
		greeted: make(chan struct{}), done: make(chan struct{}), waiting: make(map[int]chan monitorMessage),
	}
	go m.read()
	return m
}

// close ends the conversation and waits for the reader.
func (m *monitor) close() {
	_ = m.conn.Close()
	<-m.done
}

// read takes in what qemu sends until its end is gone or nonsense comes.
func (m *monitor) read() {
	defer close(m.done)
	greeted := false
	lines := bufio.NewScanner(m.conn)
	lines.Buffer(nil, maxMonitorLine)
	for lines.Scan() {
		var msg monitorMessage
		if err := json.Unmarshal(lines.Bytes(), &msg); err != nil {
			return
		}
		switch {
		case msg.Event != "":
			select {
			case m.events <- monitorEvent{name: msg.Event, guest: msg.Data.Guest, reason: msg.Data.Reason}:
			default:
			}
		case msg.Greeting != nil && !greeted:
			greeted = true
			close(m.greeted)
		default:
			m.answer(msg)
		}
	}
}

// answer hands an answer to its caller, if that still waits.
func (m *monitor) answer(msg monitorMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to := m.waiting[msg.ID]; to != nil {
		to <- msg // it has room for the one answer there is
		delete(m.waiting, msg.ID)
	}
}

// negotiate waits for the greeting and takes the protocol as it is.
func (m *monitor) negotiate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	select {
	case <-m.greeted:
	case <-m.done:
		return errMonitorGone
	case <-ctx.Done():
		return fmt.Errorf("wait for qemu's greeting: %w", ctx.Err())
	}
	return m.do(ctx, "qmp_capabilities", nil)
}

// do carries out a command. Arguments may be nil.
func (m *monitor) do(ctx context.Context, command string, arguments any) error {
	_, err := m.ask(ctx, command, arguments)
	return err
}

func (m *monitor) ask(ctx context.Context, command string, arguments any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	id, answer := m.expect()
	defer m.forget(id)
	if err := m.send(id, command, arguments); err != nil {
		return nil, err
	}
	select {
	case msg := <-answer:
		if msg.Error != nil {
			return nil, fmt.Errorf("%s: %w", command, msg.Error)
		}
		return msg.Return, nil
	case <-m.done:
		return nil, errMonitorGone
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: no answer from qemu: %w", command, ctx.Err())
	}
}

func (m *monitor) expect() (id int, answer <-chan monitorMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastID++
	to := make(chan monitorMessage, 1)
	m.waiting[m.lastID] = to
	return m.lastID, to
}

func (m *monitor) forget(id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, id)
}

// send writes a command; a QEMU process that does not read is given up.
func (m *monitor) send(id int, command string, arguments any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	_ = m.conn.SetWriteDeadline(time.Now().Add(monitorTimeout))
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		return errMonitorGone
	}
	return nil
}

// status is the state of the machine, in QEMU's words.
func (m *monitor) status(ctx context.Context) (string, error) {
	raw, err := m.ask(ctx, "query-status", nil)
	if err != nil {
		return "", err
	}
	var answer struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return "", fmt.Errorf("query-status: %w", err)
	}
	return answer.Status, nil
}

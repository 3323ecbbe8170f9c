package holder

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// namePrefix begins the names that Ingots hold. They are abstract socket addresses
	// (unix(7)): they belong to a network namespace, and end with the process.
	namePrefix = "@ingot-holder-"
	// maxID is how long an ID may be, for an address has 108 bytes.
	maxID = 64
	// nameTimeout bounds a look at a name. The system answers at once.
	nameTimeout = 2 * time.Second
)

var errNoNames = errors.New("this system has no abstract sockets")

// HoldName holds the name of the process until it ends or closes it.
func HoldName(id string) (io.Closer, error) {
	address, err := addressOf(id)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", address)
	if err != nil {
		return nil, fmt.Errorf("hold the name of this process: %w", err)
	}
	h := &heldName{listener: listener, done: make(chan struct{})}
	go h.run()
	return h, nil
}

// NameHeld reports whether the process with this ID lives, in this network namespace.
func NameHeld(id string) (bool, error) {
	address, err := addressOf(id)
	if err != nil {
		return false, err
	}
	conn, err := net.DialTimeout("unix", address, nameTimeout)
	switch {
	case err == nil:
		return true, conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return false, nil
	case errors.Is(err, syscall.EAGAIN): // its queue is full, so there is one
		return true, nil
	}
	return false, fmt.Errorf("look for the process %s: %w", id, err)
}

// addressOf refuses what is no ID: it may come from the status branch.
func addressOf(id string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", errNoNames
	}
	if id == "" || len(id) > maxID || strings.IndexFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) >= 0 {
		return "", fmt.Errorf("%.80q is no ID of a holder: 1 to %d lower-case letters and digits are", id, maxID)
	}
	return namePrefix + id, nil
}

// heldName hangs up on everybody who checks whether it is there.
type heldName struct {
	listener net.Listener
	done     chan struct{}
}

func (h *heldName) run() {
	defer close(h.done)
	for {
		conn, err := h.listener.Accept()
		switch {
		case err == nil:
			conn.Close()
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, perhaps: the name is held all the same
			time.Sleep(acceptPause)
		}
	}
}

// acceptPause keeps a process that is out of descriptors from trying all the time.
const acceptPause = 100 * time.Millisecond

// Close implements io.Closer.
func (h *heldName) Close() error {
	err := h.listener.Close()
	<-h.done
	return err
}

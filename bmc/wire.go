package bmc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	connBuffer = 1 << 10  // bytes that are read at once
	maxHeader  = 64 << 10 // bytes of an answer's header
	// idleKept is how long an idle connection stays open.
	idleKept = 5 * time.Minute
)

// wire sends requests to one BMC. It keeps idle connections open without a goroutine and
// buffers, of which http.Transport has two for each: 20 kB for each idle BMC.
type wire struct {
	plain, secure dialFunc

	mu     sync.Mutex
	idle   []*conn
	closed int         // calls of closeIdle
	expiry *time.Timer // nil until a connection is idle
}

type conn struct {
	net.Conn
	to     string    // scheme and host
	closed int       // of wire, when it was opened
	used   time.Time // last exchange; zero = it is new
	// answered is set by the first byte of an answer to the last request, and clean by a whole
	// answer after which the connection can be used again.
	answered, clean bool
}

// send sends a request that changes nothing and returns the whole answer. The BMC may close an
// idle connection meanwhile, so the request is repeated on a new connection.
func (w *wire) send(req *http.Request) (*http.Response, error) {
	c, err := w.take(req, idleKept)
	if err != nil {
		return nil, err
	}
	idle := !c.used.IsZero()
	resp, err := w.exchange(c, req)
	if err == nil || !idle || c.answered || req.Method != http.MethodGet || req.Context().Err() != nil {
		return resp, err
	}
	if c, err = w.take(req, 0); err != nil {
		return nil, err
	}
	return w.exchange(c, req)
}

// take returns an idle connection that was used within the given time, or a new one.
func (w *wire) take(req *http.Request, within time.Duration) (*conn, error) {
	u := req.URL
	to := u.Scheme + "://" + u.Host
	for {
		c := w.pop()
		if c == nil {
			break
		}
		if c.to == to && time.Since(c.used) <= within && c.isOpen() {
			return c, nil
		}
		_ = c.Close() // it is not used again
	}
	dial := w.plain
	if u.Scheme == "https" {
		dial = w.secure
	}
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	opened, err := dial(req.Context(), "tcp", hostPort(u))
	if err != nil {
		return nil, err
	}
	return &conn{Conn: opened, to: to, closed: closed}, nil
}

// hostPort returns the address of a URL, with the port of its scheme unless it has one.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// pop returns an idle connection, nil if there is none.
func (w *wire) pop() (c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.idle) - 1; last >= 0 {
		c, w.idle = w.idle[last], w.idle[:last]
	}
	return c
}

// put keeps an idle connection, unless closeIdle was called since it was opened.
func (w *wire) put(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed != w.closed {
		_ = c.Close() // it is not used again
		return
	}
	c.used = time.Now()
	w.idle = append(w.idle, c)
	if w.expiry == nil {
		w.expiry = time.AfterFunc(idleKept, w.closeIdle)
	}
	w.expiry.Reset(idleKept)
}

// closeIdle closes the idle connections now, and those that are in use after their request.
func (w *wire) closeIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.idle {
		_ = c.Close() // it is not used again
	}
	w.idle = nil
	w.closed++
}

// exchange sends a request on a connection, reads the whole answer, and keeps the connection if
// it can be used again.
func (w *wire) exchange(c *conn, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.roundTrip(req)
	if stop() && c.clean {
		w.put(c)
	} else {
		_ = c.Close() // it is not used again
	}
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// roundTrip sends a request and reads the whole answer.
func (c *conn) roundTrip(req *http.Request) (*http.Response, error) {
	c.answered, c.clean = false, false
	var out bytes.Buffer
	if err := req.Write(&out); err != nil {
		return nil, err
	}
	if _, err := c.Write(out.Bytes()); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: c, N: maxHeader}
	in := bufio.NewReaderSize(limited, connBuffer)
	resp, err := http.ReadResponse(in, req)
	for err == nil && resp.StatusCode/100 == 1 { // interim (RFC 9110 §15.2)
		resp, err = http.ReadResponse(in, req)
	}
	c.answered = limited.N < maxHeader
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	limited.N = math.MaxInt64
	err = readAll(resp)
	c.clean = err == nil && !resp.Close && in.Buffered() == 0
	return resp, err
}

// isOpen reports whether the BMC has neither closed an idle connection nor sent anything on it.
func (c *conn) isOpen() bool {
	if c.isQuiet() {
		return true
	}
	// Records of TLS itself, such as tickets, do not end the connection.
	if c.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

// isQuiet reports whether nothing has come, not even the end. It does not wait.
func (c *conn) isQuiet() (quiet bool) {
	plain := c.Conn
	if over, ok := plain.(interface{ NetConn() net.Conn }); ok {
		plain = over.NetConn()
	}
	socket, ok := plain.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return quiet && err == nil
}

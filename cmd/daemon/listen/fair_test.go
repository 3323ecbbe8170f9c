package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model/must"
)

// connect opens connections to a listener from an address, each accepted, for as long as
// the test lasts.
func connect(t *testing.T, l *fairListener, from string, n int) (theirs []net.Conn) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range n {
		conn := must.Get(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = conn.Close() })
		ours := must.Get(l.Accept())(t)
		t.Cleanup(func() { _ = ours.Close() })
		theirs = append(theirs, conn)
	}
	return theirs
}

func isCut(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// ownAddress is an address of this machine that is not loopback's.
func ownAddress(t *testing.T) string {
	t.Helper()
	all := must.Get(net.InterfaceAddrs())(t)
	for _, a := range all {
		if p, ok := a.(*net.IPNet); ok && !p.IP.IsLoopback() && p.IP.To4() != nil {
			return p.IP.String()
		}
	}
	t.Skip("this machine has loopback's addresses alone")
	return ""
}

func newTestListener(t *testing.T, limit int) *fairListener {
	t.Helper()
	ln := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0"))(t)
	l := newFairListener(ln, limit)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestAClientWithManyConnectionsShutsNobodyOut(t *testing.T) {
	many := ownAddress(t)
	l := newTestListener(t, fairShare+10)
	first := connect(t, l, "127.0.0.1", 5)
	greedy := connect(t, l, many, fairShare+5)
	late := connect(t, l, "127.0.0.2", 3)
	for n, conn := range greedy[:6] {
		if cut := isCut(conn); cut != (n < 3) {
			t.Errorf("connection %d of the client that has the most is cut: %v", n, cut)
		}
	}
	for n, conn := range append(first, late...) {
		if isCut(conn) {
			t.Errorf("connection %d of a client that has few is cut", n)
		}
	}
}

func TestClientsWaitWhileNobodyHasMoreThanItsShare(t *testing.T) {
	l := newTestListener(t, 2)
	there := connect(t, l, "127.0.0.1", 1)
	held := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()))(t)
	defer held.Close()
	second := must.Get(l.Accept())(t)
	third := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()))(t)
	defer third.Close()
	accepted := make(chan net.Conn)
	go func() {
		conn, _ := l.Accept()
		accepted <- conn
	}()
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted of two")
	case <-time.After(50 * time.Millisecond):
	}
	must.Do(t, errors.Join(second.Close(), func() error { _ = second.Close(); return nil }()))
	if conn := <-accepted; conn == nil {
		t.Error("a connection that ended made no room")
	} else {
		_ = conn.Close()
	}
	if isCut(there[0]) {
		t.Error("a client that has its share alone lost a connection")
	}
}

func TestAClosedListenerAcceptsNoMore(t *testing.T) {
	l := newTestListener(t, 1)
	_ = connect(t, l, "127.0.0.1", 1)
	waiting := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()))(t)
	defer waiting.Close()
	failed := make(chan error)
	go func() {
		_, err := l.Accept()
		failed <- err
	}()
	_ = l.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed", err)
	}
}

// silentListener is a listener to which no client connects.
type silentListener struct{ net.Listener }

func (silentListener) Close() error { return nil }

func TestAConnectionThatWaitsForRoomIsRefusedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFairListener(silentListener{}, 1)
		conn := func() *trackedConn { return &trackedConn{listener: l, client: netip.MustParseAddr("127.0.0.1")} }
		if !l.admit(conn()) {
			t.Fatal("the first was not admitted")
		}
		admitted := make(chan bool)
		go func() { admitted <- l.admit(conn()) }()
		synctest.Wait() // for room
		_ = l.Close()
		if <-admitted {
			t.Error("the second was admitted, though all is taken")
		}
	})
}

// A file goes to a client without passing through this process only if the connection
// that net/http holds takes it over, as TCP's own does.
func TestTheKernelSendsFilesToClients(t *testing.T) {
	ln := must.Get(Open(t.Context(), "boot.listen", "127.0.0.1:0"))(t)
	kinds := make(chan bool, 1)
	srv := &http.Server{
		Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			_, ok := c.(io.ReaderFrom)
			kinds <- ok
			return ctx
		},
	}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	conn := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String()))(t)
	defer conn.Close()
	if !<-kinds {
		t.Error("the connections of a listener take no files over")
	}
}

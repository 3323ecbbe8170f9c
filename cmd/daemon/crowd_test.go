package daemon

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
)

// guests opens connections to a crowd from an address, each accepted, for as long as the
// test lasts.
func guests(t *testing.T, c *crowd, from string, n int) (theirs []net.Conn) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range n {
		conn, err := d.DialContext(t.Context(), "tcp", c.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		ours, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ours.Close() })
		theirs = append(theirs, conn)
	}
	return theirs
}

// isCut reports whether the other side ended a connection.
func isCut(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// ownAddress is an address of this machine that is not loopback's.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, ok := a.(*net.IPNet); ok && !p.IP.IsLoopback() && p.IP.To4() != nil {
			return p.IP.String()
		}
	}
	t.Skip("this machine has loopback's addresses alone")
	return ""
}

func newTestCrowd(t *testing.T, most int) *crowd {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(ln, most)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestWhoOpensManyConnectionsKeepsNobodyOut(t *testing.T) {
	many := ownAddress(t)
	c := newTestCrowd(t, crowdShare+10)
	first := guests(t, c, "127.0.0.1", 5)
	crowding := guests(t, c, many, crowdShare+5)
	late := guests(t, c, "127.0.0.2", 3)
	for n, conn := range crowding[:6] {
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

func TestWhileNobodyHasMoreThanItsShareClientsWait(t *testing.T) {
	c := newTestCrowd(t, 2)
	there := guests(t, c, "127.0.0.1", 1)
	held, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	second, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	third, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	accepted := make(chan net.Conn)
	go func() {
		conn, _ := c.Accept()
		accepted <- conn
	}()
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted of two")
	case <-time.After(50 * time.Millisecond):
	}
	if err := errors.Join(second.Close(), func() error { _ = second.Close(); return nil }()); err != nil {
		t.Fatal(err)
	}
	if conn := <-accepted; conn == nil {
		t.Error("a connection that ended made no room")
	} else {
		_ = conn.Close()
	}
	if isCut(there[0]) {
		t.Error("a client that has its share alone lost a connection")
	}
}

func TestAClosedCrowdWaitsForNobody(t *testing.T) {
	c := newTestCrowd(t, 1)
	_ = guests(t, c, "127.0.0.1", 1)
	waiting, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	failed := make(chan error)
	go func() {
		_, err := c.Accept()
		failed <- err
	}()
	_ = c.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed", err)
	}
}

// nothing is a listener to which nobody comes.
type nothing struct{ net.Listener }

func (nothing) Close() error { return nil }

func TestWhoWaitsForRoomIsSentAwayByTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(nothing{}, 1)
		guest := func() *member { return &member{crowd: c, client: netip.MustParseAddr("127.0.0.1")} }
		if !c.admit(guest()) {
			t.Fatal("the first was not admitted")
		}
		admitted := make(chan bool)
		go func() { admitted <- c.admit(guest()) }()
		synctest.Wait() // for room
		_ = c.Close()
		if <-admitted {
			t.Error("the second was admitted, though all is taken")
		}
	})
}

// A file goes to a client without passing through this process only if the connection
// that net/http holds takes it over, as TCP's own does.
func TestTheKernelSendsFilesToClients(t *testing.T) {
	ln, err := bind(t.Context(), listenSetting{key: "boot.listen", address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
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
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !<-kinds {
		t.Error("the connections of a listener take no files over")
	}
}

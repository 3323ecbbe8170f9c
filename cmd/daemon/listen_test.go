package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc"
	"ingot/bootsvc/neighbour"
)

// loopbackOptions are options whose listeners take any free port of loopback.
func loopbackOptions() Options {
	o := DefaultOptions()
	o.Boot.Listen, o.Registry.Listen, o.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	return o
}

func TestATakenPortIsNamedWithItsKey(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	o := loopbackOptions()
	o.Admin.Listen = other.Addr().String()

	_, err = listen(t.Context(), &o)
	want := fmt.Sprintf("admin.listen: cannot listen on %s: address already in use; stop the program that listens there, or set another port", o.Admin.Listen)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestConnectionsAreBoundedAndSendFiles(t *testing.T) {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	l := newCrowd(tcp, 1)
	accepted, failed := make(chan net.Conn, 2), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	if _, ok := first.(io.ReaderFrom); !ok {
		t.Error("the kernel cannot send files to it")
	}
	if len(accepted) != 0 {
		t.Errorf("%d more connections accepted", len(accepted))
	}
	first.Close()
	first.Close() // gives back no second slot
	<-accepted    // the one that waited
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed, though all slots are taken", err)
	}
}

func TestAnAddressOfAnotherMachineIsNamedWithItsKey(t *testing.T) {
	o := loopbackOptions()
	o.Boot.Listen = "192.0.2.1:8082" // RFC 5737: nobody's
	_, err := listen(t.Context(), &o)
	if err == nil || !strings.HasPrefix(err.Error(), "boot.listen: cannot listen on 192.0.2.1:8082: ") || !strings.HasSuffix(err.Error(), "or leave the host out") {
		t.Errorf("got %v", err)
	}
}

func TestAListenerWithoutAnAddressIsOff(t *testing.T) {
	o := loopbackOptions()
	o.Boot.Listen = ""
	l, err := listen(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	got := l.addresses()
	if got.Boot != "" || got.Registry == "" || got.Admin == "" {
		t.Errorf("got %+v, want all but boot", got)
	}
}

func TestRequestsUnderWayAreFinished(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, finish := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		io.WriteString(w, "done")
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var log bytes.Buffer
	go func() { served <- serve(ctx, ln, handler, slog.New(slog.NewTextHandler(&log, nil))) }()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-arrived
	stop()
	for refused := false; !refused; {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if refused = err != nil; !refused {
			conn.Close()
		}
	}
	close(finish)
	if got := <-answered; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serve returned %v after it was stopped", err)
	}
	if log.Len() > 0 {
		t.Errorf("it complained: %s", &log)
	}
}

func TestAListenerThatFailsIsAnError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := serve(t.Context(), ln, http.NotFoundHandler(), slog.New(slog.DiscardHandler)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestPublicURL(t *testing.T) {
	host := func(cidrs ...string) func() ([]net.Addr, error) {
		return func() ([]net.Addr, error) {
			var all []net.Addr
			for _, c := range cidrs {
				ip, n, err := net.ParseCIDR(c)
				if err != nil {
					return nil, err
				}
				all = append(all, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			return all, nil
		}
	}
	tcp := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name, tc := range map[string]struct {
		configured string
		listener   net.Addr
		host       func() ([]net.Addr, error)
		want       string
	}{
		"what is configured counts":                  {"https://boot.example.com/", tcp(":8082"), host(), "https://boot.example.com"},
		"loopback stays loopback":                    {"", tcp("127.0.0.1:8082"), host("10.0.0.5/24"), "http://127.0.0.1:8082"},
		"an address of its own is taken":             {"", tcp("10.0.0.9:8082"), host("10.0.0.5/24"), "http://10.0.0.9:8082"},
		"the first address that is not loopback":     {"", tcp(":8082"), host("127.0.0.1/8", "10.0.0.5/24", "10.1.0.5/24"), "http://10.0.0.5:8082"},
		"IPv4 before IPv6":                           {"", tcp(":8082"), host("fe80::1/64", "2001:db8::5/64", "10.0.0.5/24"), "http://10.0.0.5:8082"},
		"IPv6 when there is nothing else":            {"", tcp("[::]:8082"), host("::1/128", "fe80::1/64", "2001:db8::5/64"), "http://[2001:db8::5]:8082"},
		"loopback when the machine has nothing else": {"", tcp(":8082"), host("127.0.0.1/8"), "http://127.0.0.1:8082"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := publicURL(tc.configured, tc.listener, tc.host)
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// A connection does not outlive what is remembered of who opened it.
func TestAnOldConnectionEndsWithItsAnswer(t *testing.T) {
	handler := ageing(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for title, tc := range map[string]struct {
		age  time.Duration
		want string
	}{
		"a new one is kept": {0, ""},
		"an old one ends":   {maxAge + time.Second, "close"},
	} {
		ctx := context.WithValue(t.Context(), bornKey{}, time.Now().Add(-tc.age))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if got := w.Header().Get("Connection"); got != tc.want {
			t.Errorf("%s: Connection %q, want %q", title, got, tc.want)
		}
	}
	if _, ok := born(t.Context(), nil).Value(bornKey{}).(time.Time); !ok {
		t.Error("nobody knows how old a connection is")
	}
	// a half open connection, our own limit, the client's time for its next request, and hold
	srv := bootsvc.NewHTTPServer(nil)
	longest := 63*time.Second + maxAge + srv.IdleTimeout + srv.ReadHeaderTimeout + 30*time.Second + holdLimit
	if longest > neighbour.Memory {
		t.Errorf("a client may wait %v until it is judged, and who it was is remembered for %v", longest, neighbour.Memory)
	}
}

package bootsvc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci/ociserver"
	"ingot/model"
	"ingot/model/must"
)

// speak sends a request in so many words on a connection of its own, and returns the
// answer.
func speak(t *testing.T, addr, words string) (*http.Response, string) {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	must.Get(io.WriteString(conn, words))(t)
	method, _, _ := strings.Cut(words, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return resp, string(body)
}

// everyRoute are paths that are served to the rack's one server, at 127.0.0.1.
func everyRoute(t *testing.T) (*rack, []string) {
	t.Helper()
	r := newRack(t, nil, func(o *Options) {
		leaseTable{"127.0.0.1": mac1}.bind(o)
		o.URLFromHost, o.Loaders = true, loaders(t, "ipxe.efi")
	})
	ref, _, err := r.registry.Push(
		"os/uki", "1", ociserver.Image{Kernel: pattern(200_000, 4), Initrd: pattern(1000, 5), UKI: pattern(300_000, 6)},
	)
	if err != nil {
		t.Fatal(err)
	}
	r.ticket.Image = must.Get(r.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	payload := ignition.Payload{
		Ignition: `{"ignition":{"version":"3.3.0"}}`, NoCloud: map[string]string{"user-data": "#cloud-config"},
	}
	r.desk.arm(r.ticket, payload.Seal().Reveal())
	r.desk.holders[mac1] = r.desk.holders[uuid1]
	token := tokenOf(r.ticket).Reveal()
	return r, []string{
		"/httpboot", "/loader/ipxe.efi", "/ipxe", "/ipxe/" + uuid1, "/ipxe/" + mac1,
		layerPath(r.ticket, r.ticket.Image.Kernel), netboot.UKIPath(r.ticket),
		"/ignition/" + uuid1, "/ignition/" + uuid1 + "/" + token, "/nocloud/" + uuid1 + "/" + token + "/user-data", "/nothing",
	}
}

func TestEveryRouteIsAskedByHEAD(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r, paths := everyRoute(t)
	addr := r.Listener.Addr().String()
	for _, path := range paths {
		for _, host := range []string{"boot.example", "[fd00::1]:8082"} {
			head, none := speak(t, addr, "HEAD "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if uses := r.desk.used(); uses != nil || none != "" {
				t.Errorf("HEAD %s uses %v, and has the body %q", path, uses, none)
			}
			got, body := speak(t, addr, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if head.StatusCode != got.StatusCode || head.ContentLength != int64(len(body)) || len(got.TransferEncoding) > 0 ||
				head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
				t.Errorf(
					"T08: HEAD %s: %s, %d bytes of %s; GET: %s, %d of %s, %v", path, head.Status, head.ContentLength,
					head.Header.Get("Content-Type"), got.Status, len(body), got.Header.Get("Content-Type"), got.TransferEncoding,
				)
			}
			if want := path != "/nothing"; (got.StatusCode == http.StatusOK) != want {
				t.Errorf("GET %s: %s %s", path, got.Status, body)
			}
			with(r.desk, "", false, nil)
			r.desk.holders[mac1] = r.desk.holders[uuid1]
			r.service.scripts = netboot.NewScriptLimiter()
			_ = r.desk.used()
		}
	}
}

func TestOddRequestsOverSockets(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r, _ := everyRoute(t)
	addr := r.Listener.Addr().String()
	ignition := "/ignition/" + strings.ToUpper(uuid1) + "/" + tokenOf(r.ticket).Reveal()
	kernel := layerPath(r.ticket, r.ticket.Image.Kernel)
	for title, tc := range map[string]struct {
		path, header string
		code         int
		body         string
	}{
		"T07: a UUID in capitals": {
			path: "/ipxe/" + strings.ToUpper(uuid1), header: "Host: x",
			code: 200, body: "kernel ${kernel-url}",
		},
		"T06: a machine whose UUID is all F": {
			path: "/ipxe/FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", header: "Host: x", code: 200,
			body: "chain --replace --autofree ${base-url}/${net0/mac}",
		},
		"T06: a machine whose UUID is all 0": {
			path: "/ipxe/00000000-0000-0000-0000-000000000000", header: "Host: x", code: 200,
			body: "chain --replace --autofree ${base-url}/${net0/mac}",
		},
		"T06: there is no Ignition of all F": {
			path: "/ignition/ffffffff-ffff-ffff-ffff-ffffffffffff/x", header: "Host: x",
			code: 404, body: "no server",
		},
		"T10: links lead to the IPv6 address of Host": {
			path: "/ipxe/" + uuid1, header: "Host: [fd00::1]:8082", code: 200, body: " ds=nocloud;s=http://[fd00::1]:8082/nocloud/",
		},
		"T10: a Host that is none is passed over": {
			path: "/ipxe", header: "Host: [fd00::1",
			code: 200, body: "set ipxe-svc http://127.0.0.1:",
		},
		"T10: a Host that breaks out is refused": {path: "/ipxe", header: "Host: 10.0.0.1\rexit", code: 400},
		"a request without Host":                 {path: "/ipxe", header: "X: y", code: 400},
		"T13: an Ignition that it reads": {
			path: ignition, header: "Host: x\r\nAccept: application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1", code: 200,
			body: `"3.3.0"`,
		},
		"T13: an Ignition that is too new": {
			path: ignition, header: "Host: x\r\nAccept: application/vnd.coreos.ignition+json;version=3.2.0", code: 406,
			body: "at most 3.2.0",
		},
		"T09: the rest of a layer": {
			path: kernel, header: "Host: x\r\nRange: bytes=199999-",
			code: 206, body: string(pattern(200_000, 4)[199_999:]),
		},
		"T09: nothing behind a layer's end": {
			path: kernel, header: "Host: x\r\nRange: bytes=200000-",
			code: 416, body: "behind the layer's end",
		},
		"a header that is too long is refused": {
			path: "/ipxe", header: "Host: x\r\nX: " + strings.Repeat("y", 32<<10),
			code: 431,
		},
		"an encoded slash is no way round": {path: "/ipxe/..%2f..%2fignition", header: "Host: x", code: 404},
		"a request that is smuggled in is not believed": {
			path: "/ipxe", header: "Host: x\r\nContent-Length: 4\r\nTransfer-Encoding: gzip",
			code: 501,
		},
	} {
		t.Run(title, func(t *testing.T) {
			resp, body := speak(t, addr, "GET "+tc.path+" HTTP/1.1\r\n"+tc.header+"\r\nConnection: close\r\n\r\n")
			if resp.StatusCode != tc.code || !strings.Contains(body, tc.body) {
				t.Errorf("got %s %.200q; want %d %q", resp.Status, body, tc.code, tc.body)
			}
			if want := "bytes 199999-199999/200000"; tc.code == 206 && resp.Header.Get("Content-Range") != want {
				t.Errorf("Content-Range is %q, want %q", resp.Header.Get("Content-Range"), want)
			}
			if want := "bytes */200000"; tc.code == 416 && resp.Header.Get("Content-Range") != want {
				t.Errorf("Content-Range is %q, want %q", resp.Header.Get("Content-Range"), want)
			}
			with(r.desk, "", false, nil)
			r.service.scripts = netboot.NewScriptLimiter()
		})
	}
}

func hurried(t *testing.T, r *rack) (addr string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = NewHTTPServer(r.service.Handler())
	if c := srv.Config; c.ReadHeaderTimeout > 10*time.Second || c.ReadTimeout > 30*time.Second ||
		c.IdleTimeout > time.Minute || c.MaxHeaderBytes > 64<<10 || c.WriteTimeout != 0 {
		t.Errorf(
			"a client may take its time: %v for the header, %v for the request, %v idle, %d bytes", c.ReadHeaderTimeout, c.ReadTimeout,
			c.IdleTimeout, c.MaxHeaderBytes,
		)
	}
	srv.Config.ReadHeaderTimeout, srv.Config.ReadTimeout = 500*time.Millisecond, 500*time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func TestSlowClientsAreCutOffAndKeepNobodyWaiting(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r := newRack(t, nil, nil)
	r.service.stall = 500 * time.Millisecond
	r.ticket.Image.Squashfs = push(t, r, pattern(32<<20, 5))
	addr := hurried(t, r)
	for title, words := range map[string]string{
		"the header comes byte by byte":        "GET /ipxe HTTP/1.1\r\nHost: x\r\n",
		"the request line never ends":          "GET /ipxe",
		"nothing comes at all":                 "",
		"the body that is told of never comes": "GET /ipxe HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
		"the answer's body is never read":      "GET " + layerPath(r.ticket, r.ticket.Image.Squashfs) + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(title, func(t *testing.T) {
			var slow []net.Conn
			for range 50 {
				conn := must.Get(net.Dial("tcp", addr))(t)
				defer conn.Close()
				_, _ = io.WriteString(conn, words)
				slow = append(slow, conn)
			}
			start := time.Now()
			for range 20 {
				resp, body := speak(t, addr, "GET /ipxe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				if resp.StatusCode != http.StatusOK || body == "" {
					t.Errorf("another client got %s", resp.Status)
				}
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("other clients waited %s", took)
			}
			var clients sync.WaitGroup
			for _, conn := range slow[:10] {
				clients.Go(func() { dribble(t, conn) })
			}
			clients.Wait()
		})
	}
	// whoever takes nothing has kept no place from others
	resp, body := speak(t, addr, "GET "+layerPath(r.ticket, r.ticket.Image.Initrd)+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != http.StatusOK || body != string(r.parts["initrd"]) {
		t.Errorf("a client behind them got %s, %d bytes", resp.Status, len(body))
	}
}

// dribble sends a byte now and then, and returns once the connection is cut off.
func dribble(t *testing.T, conn net.Conn) {
	for end := time.Now().Add(20 * time.Second); ; {
		_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Write([]byte("x")); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if time.Now().After(end) {
			t.Error("a slow client is not cut off")
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

const crowd = 1000

// All are served, and at most so many layers are fetched from their registry at once.
func TestAThousandMachinesAtOnce(t *testing.T) {
	const slots = 4
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var asking, most atomic.Int64
	r := newRack(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			now := asking.Add(1)
			defer asking.Add(-1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			next.ServeHTTP(w, req)
		})
	}, withCache(t, func(o *imagecache.Options) { o.MaxFetches = slots }))
	for n := range crowd {
		ticket := *r.ticket
		ticket.ID, ticket.Server, ticket.UUID = fmt.Sprint(n), model.ServerName(fmt.Sprint("s", n)), crowdUUID(n)
		r.desk.arm(&ticket, `{"ignition":{"version":"3.3.0"}}`)
	}
	addr := r.Listener.Addr().String()
	start := make(chan struct{})
	var clients sync.WaitGroup
	for n := range crowd {
		clients.Go(func() {
			<-start
			ticket := model.Ticket{ID: fmt.Sprint(n), UUID: crowdUUID(n), Image: r.ticket.Image}
			for _, path := range []string{"/ipxe/" + ticket.UUID, "/ignition/" + ticket.UUID + "/" + tokenOf(&ticket).Reveal()} {
				if resp, body := speakPatiently(addr, path); resp == nil || resp.StatusCode != http.StatusOK || len(body) == 0 {
					t.Errorf("T11: %s: %v", path, resp)
				}
			}
			resp, body := speakPatiently(addr, layerPath(&ticket, r.ticket.Image.Initrd))
			if resp == nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, r.parts["initrd"]) {
				t.Errorf("T11: image %d: %v, %d bytes", n, resp, len(body))
			}
		})
	}
	close(start)
	clients.Wait()
	if most.Load() > slots {
		t.Errorf("%d layers were fetched at once, allowed are %d", most.Load(), slots)
	}
}

func crowdUUID(n int) string { return fmt.Sprintf("00000000-0000-4000-9000-%012d", n) }

// speakPatiently asks as speak does, without a test to fail. The response is nil if
// there was none that is whole.
func speakPatiently(addr, path string) (*http.Response, []byte) {
	conn, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return nil, nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil
	}
	return resp, body
}

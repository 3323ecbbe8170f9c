package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"ingot/model"
	"ingot/model/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder is Files in memory.
type folder map[string][]byte

func (f folder) Open(name string) (io.ReadSeekCloser, int64, error) {
	switch contents, ok := f[name]; {
	case name == "broken":
		return nil, 0, errors.New("disk is broken")
	case name == "panic":
		panic("in Open")
	case !ok:
		return nil, 0, fs.ErrNotExist
	case name == "halved":
		return broken{bytes.NewReader(contents), len(contents) / 2}, int64(len(contents)), nil
	default:
		return held{bytes.NewReader(contents)}, int64(len(contents)), nil
	}
}

type held struct{ *bytes.Reader }

func (held) Close() error { return nil }

// broken is a file of which only so many bytes can be read.
type broken struct {
	*bytes.Reader
	good int
}

func (broken) Close() error { return nil }

func (b broken) Read(p []byte) (int, error) {
	if int(b.Size())-b.Len()+len(p) > b.good {
		return 0, errors.New("bad sector")
	}
	return b.Reader.Read(p)
}

func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// lab is a server that runs, and what Seen was told.
type lab struct {
	*Server
	port int
	stop func() // waits for the end of Run

	mu   sync.Mutex
	saw  []string
	runs error
}

func newLab(t testing.TB, files folder, change func(*Server)) *lab {
	t.Helper()
	l := &lab{}
	s := must.Get(New(Options{Loaders: files, Seen: func(client netip.Addr, name string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.saw = append(l.saw, client.String()+" "+name)
	}}))(t)
	s.answer, s.limit = 50*time.Millisecond, 50*time.Millisecond
	if change != nil {
		change(s)
	}
	must.Do(t, s.Listen(t.Context(), ":0"))
	l.Server, l.port = s, s.Addr().(*net.UDPAddr).Port
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { l.runs = s.Run(ctx) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(func() {
		l.stop()
		if l.runs != nil {
			t.Error(l.runs)
		}
	})
	return l
}

// unhurried has a server give up nobody whose machine is busy.
func unhurried(s *Server) { s.answer = time.Second }

// seen returns what Seen was told once it is n lines long.
func (l *lab) seen(t *testing.T, n int) []string {
	t.Helper()
	var saw []string
	eventually(t, fmt.Sprintf("%d transfers are seen", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		saw = append([]string(nil), l.saw...)
		return len(saw) >= n
	})
	return saw
}

func (l *lab) counted(t *testing.T, result string, want float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v requests are %s", want, result), func() bool {
		return testutil.ToFloat64(l.metrics.requests[result]) == want
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never is so that %s", what)
		}
	}
}

// client is firmware that speaks TFTP, one packet at a time.
type client struct {
	t    testing.TB
	conn *net.UDPConn
	to   *net.UDPAddr
}

func newClient(t testing.TB, l *lab, host string) *client {
	t.Helper()
	conn := must.Get(net.ListenUDP("udp", nil))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, to: &net.UDPAddr{IP: net.ParseIP(host), Port: l.port}}
}

func (c *client) send(packet []byte) {
	c.t.Helper()
	if _, err := c.conn.WriteToUDP(packet, c.to); err != nil {
		c.t.Error(err)
	}
}

func (c *client) ask(name, mode string, options ...string) { c.send(asked(name, mode, options...)) }

func asked(name, mode string, options ...string) []byte {
	return append([]byte{0, opRead}, strings.Join(append([]string{name, mode}, options...), "\x00")+"\x00"...)
}

func (c *client) acknowledge(block uint16) {
	c.send(binary.BigEndian.AppendUint16([]byte{0, opAcknowledge}, block))
}

// receive returns the next packet, nil if none comes within a while.
func (c *client) receive(within time.Duration) []byte {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	p := make([]byte, 70000)
	n, from, err := c.conn.ReadFromUDP(p)
	if err != nil {
		return nil
	}
	if !from.IP.Equal(c.to.IP) || from.Port != c.to.Port {
		c.t.Errorf("T02: the answer is from %s, not %s", from, c.to)
	}
	return p[:n]
}

// fetched is what a client got.
type fetched struct {
	Options map[string]string
	Block   int // of the first
	Body    []byte
	Error   string
}

const patience = 10 * time.Second

func (c *client) fetch(name, mode string, options ...string) fetched {
	c.t.Helper()
	c.ask(name, mode, options...)
	got := fetched{Block: 512}
	next := uint16(1)
	for {
		p := c.receive(patience)
		if len(p) < 4 {
			c.t.Errorf("no answer after %d bytes of %q", len(got.Body), name)
			return got
		}
		switch p[1] {
		case opError:
			got.Error = fmt.Sprintf("%d %s", p[3], strings.TrimRight(string(p[4:]), "\x00"))
			return got
		case opOptions:
			got.Options = make(map[string]string)
			fields := strings.Split(strings.TrimRight(string(p[2:]), "\x00"), "\x00")
			for i := 0; i+1 < len(fields); i += 2 {
				got.Options[fields[i]] = fields[i+1]
			}
			if n, err := strconv.Atoi(got.Options["blksize"]); err == nil {
				got.Block = n
			}
			c.acknowledge(0)
		case opData:
			if block := binary.BigEndian.Uint16(p[2:]); block != next {
				continue
			}
			got.Body = append(got.Body, p[4:]...)
			c.acknowledge(next)
			next++
			if len(p)-4 < got.Block {
				return got
			}
		}
	}
}

func TestATransfer(t *testing.T) {
	file := pattern(100_000)
	even := pattern(1468 * 3)
	l := newLab(t, folder{"undionly.kpxe": file, "even.efi": even, "tiny.efi": file[:9], "text": []byte("a\nb\r\n")}, unhurried)
	for title, tc := range map[string]struct {
		host, name, mode string
		options          []string
		want             fetched
	}{
		"T01: a client without options gets 512": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet",
			want: fetched{Block: 512, Body: file},
		},
		"T01: one that asks for 512 gets 512": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "512"},
			want: fetched{Options: map[string]string{"blksize": "512"}, Block: 512, Body: file},
		},
		"T01: one that asks for less gets no option": {
			host: "127.0.0.1", name: "tiny.efi", mode: "octet", options: []string{"blksize", "256"},
			want: fetched{Block: 512, Body: file[:9]},
		},
		"T01: 1428 is granted": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "1428"},
			want: fetched{Options: map[string]string{"blksize": "1428"}, Block: 1428, Body: file},
		},
		"T01: 1468 is granted": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "1468"},
			want: fetched{Options: map[string]string{"blksize": "1468"}, Block: 1468, Body: file},
		},
		"T01: 65464 is clamped": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "65464"},
			want: fetched{Options: map[string]string{"blksize": "1468"}, Block: 1468, Body: file},
		},
		"T01: more than any is clamped": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "99999"},
			want: fetched{Options: map[string]string{"blksize": "1468"}, Block: 1468, Body: file},
		},
		"T01: over IPv6 blocks leave room for tunnels": {
			host: "::1", name: "undionly.kpxe", mode: "octet", options: []string{"blksize", "1468"},
			want: fetched{Options: map[string]string{"blksize": "1428"}, Block: 1428, Body: file},
		},
		"T01: the size is told": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"tsize", "0", "blksize", "1468"},
			want: fetched{Options: map[string]string{"blksize": "1468", "tsize": "100000"}, Block: 1468, Body: file},
		},
		"options are known in capitals": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "OCTET", options: []string{"TSIZE", "0"},
			want: fetched{Options: map[string]string{"tsize": "100000"}, Block: 512, Body: file},
		},
		"a window is granted, a timeout is not": {
			host: "127.0.0.1", name: "undionly.kpxe", mode: "octet", options: []string{"windowsize", "1", "timeout", "3"},
			want: fetched{Options: map[string]string{"windowsize": "1"}, Block: 512, Body: file},
		},
		"a block size that is no number is passed over": {
			host: "127.0.0.1", name: "tiny.efi", mode: "octet", options: []string{"blksize", "x"},
			want: fetched{Block: 512, Body: file[:9]},
		},
		"a file of whole blocks ends with an empty one": {
			host: "127.0.0.1", name: "even.efi", mode: "octet", options: []string{"blksize", "1468"},
			want: fetched{Options: map[string]string{"blksize": "1468"}, Block: 1468, Body: even},
		},
		"netascii is translated": {
			host: "127.0.0.1", name: "text", mode: "netascii", options: []string{"tsize", "0"},
			want: fetched{Block: 512, Body: []byte("a\r\nb\r\x00\r\n")},
		},
		"the answer is from the address that was asked": {
			host: "127.0.0.5", name: "tiny.efi", mode: "octet",
			want: fetched{Block: 512, Body: file[:9]},
		},
		"T03: a slash at the beginning": {
			host: "127.0.0.1", name: "/tiny.efi", mode: "octet",
			want: fetched{Block: 512, Body: file[:9]},
		},
		"T03: backslashes at the beginning": {
			host: "127.0.0.1", name: `\\tiny.efi`, mode: "octet",
			want: fetched{Block: 512, Body: file[:9]},
		},
		"T03: the end of the DHCP options": {
			host: "127.0.0.1", name: "tiny.efi\xff", mode: "octet",
			want: fetched{Block: 512, Body: file[:9]},
		},
		"T03: a path that climbs": {
			host: "127.0.0.1", name: "../tiny.efi", mode: "octet", want: fetched{Block: 512, Error: "1 file not found"},
		},
		"T03: an absolute path": {
			host: "127.0.0.1", name: "/etc/passwd", mode: "octet", want: fetched{Block: 512, Error: "1 file not found"},
		},
		"T03: a path of Windows": {
			host: "127.0.0.1", name: `C:\tiny.efi`, mode: "octet", want: fetched{Block: 512, Error: "1 file not found"},
		},
		"T03: nothing but a slash": {
			host: "127.0.0.1", name: "/", mode: "octet",
			want: fetched{Block: 512, Error: "1 file not found"},
		},
		"T04: what shim asks for": {
			host: "127.0.0.1", name: "grubx64.efi", mode: "octet", options: []string{"tsize", "0"},
			want: fetched{Block: 512, Error: "1 file not found"},
		},
		"T04: what new iPXE asks for": {
			host: "127.0.0.1", name: "autoexec.ipxe", mode: "octet", options: []string{"blksize", "1432", "tsize", "0"},
			want: fetched{Block: 512, Error: "1 file not found"},
		},
		"a file that cannot be read": {
			host: "127.0.0.1", name: "broken", mode: "octet", want: fetched{Block: 512, Error: "1 the file cannot be read"},
		},
		"a file whose opening panics": {
			host: "127.0.0.1", name: "panic", mode: "octet",
			want: fetched{Block: 512, Error: "1 internal error"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			got := newClient(t, l, tc.host).fetch(tc.name, tc.mode, tc.options...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%.2000s", diff)
			}
		})
	}
	l.counted(t, resultOK, 18)
	saw := slices.Compact(slices.Sorted(slices.Values(l.seen(t, 5))))
	want := []string{"127.0.0.1 even.efi", "127.0.0.1 text", "127.0.0.1 tiny.efi", "127.0.0.1 undionly.kpxe", "::1 undionly.kpxe"}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("what was seen, -want +got:\n%s", diff)
	}
	l.counted(t, resultNotFound, 6)
	l.counted(t, resultFailed, 2)
	l.idle(t)
}

func (l *lab) idle(t *testing.T) {
	t.Helper()
	eventually(t, "no transfer is under way", func() bool {
		l.Server.mu.Lock()
		defer l.Server.mu.Unlock()
		return len(l.all) == 0 && len(l.current) == 0 && len(l.callers) == 0 && testutil.ToFloat64(l.metrics.active) == 0
	})
}

func TestMoreBlocksThanCanBeCounted(t *testing.T) {
	file := pattern(512*65_600 + 7)
	l := newLab(t, folder{"big": file}, func(s *Server) { s.answer = time.Second })
	if got := newClient(t, l, "127.0.0.1").fetch("big", "octet"); !bytes.Equal(got.Body, file) {
		t.Errorf("T01: %d bytes of %d arrived, %s", len(got.Body), len(file), got.Error)
	}
}

// UEFI asks for the size first, and then again for the file.
func TestAClientThatOnlyAsksForTheSize(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(5000)}, nil)
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet", "tsize", "0", "blksize", "1468")
	if p := c.receive(patience); len(p) < 2 || p[1] != opOptions {
		t.Fatalf("answer %q", p)
	}
	c.send(errorPacket(8, "User aborted the transfer"))
	l.counted(t, resultDeclined, 1)
	if p := c.receive(200 * time.Millisecond); p != nil {
		t.Errorf("an error is answered: %q", p)
	}
	if got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet", "tsize", "0"); len(got.Body) != 5000 {
		t.Errorf("then %d bytes, %s", len(got.Body), got.Error)
	}
	if diff := cmp.Diff([]string{"127.0.0.1 ipxe.efi"}, l.seen(t, 1)); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	l.idle(t)
}

// beginning is a transfer of so many bytes whose first block the client has, and has
// not acknowledged.
func beginning(t *testing.T, size int) (*lab, *client) {
	t.Helper()
	l := newLab(t, folder{"ipxe.efi": pattern(size)}, nil)
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet")
	c.receive(patience)
	return l, c
}

func TestAnAcknowledgementOfWhatWasNotSentIsNone(t *testing.T) {
	l, c := beginning(t, 5000)
	for _, block := range []uint16{0, 2, 65535} {
		c.acknowledge(block)
	}
	c.send(errorPacket(8, "bye"))
	l.counted(t, resultDeclined, 1) // as it has acknowledged nothing
	l.idle(t)
}

func TestAClientThatBreaksOff(t *testing.T) {
	l, c := beginning(t, 5000)
	c.acknowledge(1)
	c.receive(patience)
	c.send(errorPacket(3, "disk full"))
	l.counted(t, resultAborted, 1)
	if p := c.receive(200 * time.Millisecond); p != nil {
		t.Errorf("an error is answered: %q", p)
	}
	l.seen(t, 1)
	l.idle(t)
}

// A forged address must not be flooded: it is sent one packet for each of its own.
func TestASilentClientIsSentOnePacket(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(5000)}, nil)
	for _, options := range [][]string{nil, {"blksize", "1468"}} {
		c := newClient(t, l, "127.0.0.1")
		c.ask("ipxe.efi", "octet", options...)
		first := c.receive(patience)
		if len(first) > 516 {
			t.Errorf("the first answer has %d bytes", len(first))
		}
		if again := c.receive(200 * time.Millisecond); again != nil {
			t.Errorf("without an acknowledgement it was sent again: %q", again[:4])
		}
		c.ask("ipxe.efi", "octet", options...)
		if again := c.receive(patience); !bytes.Equal(first, again) {
			t.Errorf("asked again, it was answered %q", again)
		}
		if more := c.receive(600 * time.Millisecond); more != nil {
			t.Errorf("at the end it was sent %q", more)
		}
	}
	l.counted(t, resultTimeout, 2)
	l.idle(t)
}

func TestABlockThatIsLostIsSentAgain(t *testing.T) {
	l, c := beginning(t, 1200)
	c.acknowledge(1)
	second := c.receive(patience)
	if again := c.receive(patience); !bytes.Equal(second, again) || again[3] != 2 {
		t.Errorf("block 2 is followed by %q", again[:4])
	}
	for _, stale := range []uint16{0, 1, 3, 65535} {
		c.acknowledge(stale) // none of these may move the transfer on, nor keep it alive
	}
	l.counted(t, resultTimeout, 1)
	l.idle(t)
}

// Old ROMs ask from the same port again and again.
func TestTheNextTransferAtTheSamePort(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	l := newLab(t, folder{"ipxe.efi": pattern(5000), "undionly.kpxe": pattern(2000)}, func(s *Server) {
		s.answer = time.Second // nothing is repeated by itself meanwhile
		s.clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	c := newClient(t, l, "127.0.0.1")
	for range 50 {
		if got := c.fetch("ipxe.efi", "octet"); len(got.Body) != 5000 {
			t.Fatalf("one after another: %d bytes, %s", len(got.Body), got.Error)
		}
	}
	begin := func(name string) {
		c.ask(name, "octet")
		c.receive(patience)
		c.acknowledge(1)
		c.receive(patience)
	}
	begin("ipxe.efi")
	c.ask("ipxe.efi", "octet")
	if p := c.receive(100 * time.Millisecond); p != nil {
		t.Errorf("a request that the network repeats is answered %q", p[:4])
	}
	if got := c.fetch("undionly.kpxe", "octet"); len(got.Body) != 2000 {
		t.Errorf("another file in the middle of one: %d bytes, %s", len(got.Body), got.Error)
	}
	begin("ipxe.efi")
	mu.Lock()
	now = now.Add(restartAfter)
	mu.Unlock()
	if got := c.fetch("ipxe.efi", "octet"); len(got.Body) != 5000 {
		t.Errorf("the same again after a reset: %d bytes, %s", len(got.Body), got.Error)
	}
}

func TestWhatIsNoReadRequest(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(10)}, nil)
	for title, tc := range map[string]struct {
		packet []byte
		want   string
	}{
		"a write request":             {[]byte("\x00\x02ipxe.efi\x00octet\x00"), "\x00\x05\x00\x02files are only read here\x00"},
		"nothing":                     {[]byte{}, ""},
		"an opcode alone":             {[]byte{0, 1}, ""},
		"an opcode that there is not": {[]byte{0, 9, 1, 1, 1}, ""},
		"a request of four bytes, shorter than any error": {[]byte("\x00\x01\x00\x00"), ""},
		"data":                                {[]byte("\x00\x03\x00\x01data"), ""},
		"an acknowledgement of nothing":       {[]byte{0, 4, 0, 1}, ""},
		"an error of nothing":                 {[]byte("\x00\x05\x00\x01x\x00"), ""},
		"a request without a mode":            {[]byte("\x00\x01ipxe.efi\x00"), "\x00\x05\x00\x04\x00"},
		"a request without an end":            {[]byte("\x00\x01ipxe.efi\x00octet"), "\x00\x05\x00\x04malformed\x00"},
		"a request without a name":            {[]byte("\x00\x01\x00octet\x00"), "\x00\x05\x00\x04\x00"},
		"a request in mode mail":              {[]byte("\x00\x01ipxe.efi\x00mail\x00"), "\x00\x05\x00\x04use octet\x00"},
		"a request that is too long":          {append(asked("ipxe.efi", "octet"), make([]byte, 600)...), "\x00\x05\x00\x04too long\x00"},
		"a request of nothing but zero bytes": {append([]byte{0, 1}, make([]byte, 200)...), "\x00\x05\x00\x04malformed\x00"},
	} {
		t.Run(title, func(t *testing.T) {
			c := newClient(t, l, "127.0.0.1")
			c.send(tc.packet)
			within := 50 * time.Millisecond
			if tc.want != "" {
				within = patience
			}
			if got := string(c.receive(within)); got != tc.want {
				t.Errorf("answer %q", got)
			}
		})
	}
	l.counted(t, resultRefused, 8)
	l.idle(t)
	if got := newClient(t, l, "127.0.0.1").fetch("ipxe.efi", "octet"); len(got.Body) != 10 {
		t.Errorf("afterwards %d bytes, %s", len(got.Body), got.Error)
	}
}

func TestOneClientCannotTakeAllPlaces(t *testing.T) {
	now := time.Now()
	l := newLab(t, folder{"ipxe.efi": pattern(1000)}, func(s *Server) {
		s.answer = time.Second
		s.clock = func() time.Time { return now } // no second passes
	})
	clients := l.hold(t, maxPerAddress)
	more := newClient(t, l, "127.0.0.1")
	more.ask("ipxe.efi", "octet")
	l.counted(t, resultLimited, 1)
	if p := more.receive(patience); !bytes.Equal(p, errorPacket(codeOther, "too many from this address, ask again")) {
		t.Errorf("it is answered %q", p)
	}
	more.ask("ipxe.efi", "octet")
	l.counted(t, resultLimited, 2)
	if p := more.receive(50 * time.Millisecond); p != nil {
		t.Errorf("asked again at once, it answers %q", p)
	}
	if got := newClient(t, l, "::1").fetch("ipxe.efi", "octet"); len(got.Body) != 1000 {
		t.Errorf("another client got %d bytes, %s", len(got.Body), got.Error)
	}
	clients[0].send(errorPacket(8, "bye"))
	l.counted(t, resultDeclined, 1)
	if got := more.fetch("ipxe.efi", "octet"); len(got.Body) != 1000 {
		t.Errorf("asked again, it got %d bytes, %s", len(got.Body), got.Error)
	}
}

// hold begins n transfers that do not go on.
func (l *lab) hold(t *testing.T, n int) (clients []*client) {
	t.Helper()
	for range n {
		c := newClient(t, l, "127.0.0.1")
		c.ask("ipxe.efi", "octet")
		if c.receive(patience) == nil {
			t.Fatal("no answer")
		}
		clients = append(clients, c)
	}
	return clients
}

func TestWhoIsOverTheLimitOfAllIsTold(t *testing.T) {
	now := time.Now()
	l := newLab(t, folder{"ipxe.efi": pattern(1000)}, func(s *Server) {
		s.answer, s.maxTransfers, s.maxPerAddress = time.Second, 2, 2
		s.clock = func() time.Time { return now }
	})
	l.hold(t, 2)
	c := newClient(t, l, "::1")
	for range maxRefusals + 2 {
		c.ask("ipxe.efi", "octet")
	}
	l.counted(t, resultBusy, maxRefusals+2)
	for n := range maxRefusals {
		if p := c.receive(patience); !bytes.Equal(p, errorPacket(codeOther, "too many transfers, ask again")) {
			t.Fatalf("request %d is answered %q", n, p)
		}
	}
	if p := c.receive(50 * time.Millisecond); p != nil {
		t.Errorf("more than %d within a second are answered: %q", maxRefusals, p)
	}
}

// TestForgedRequestsKeepNobodyOut: who acknowledges nothing makes room for firmware, which asks with options; who
// acknowledges something does not.
func TestForgedRequestsKeepNobodyOut(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(1000)}, func(s *Server) { s.answer, s.maxTransfers, s.maxPerAddress = time.Second, 3, 3 })
	inTime := newClient(t, l, "127.0.0.1")
	inTime.ask("ipxe.efi", "octet")
	if inTime.receive(patience) == nil {
		t.Fatal("no answer")
	}
	inTime.acknowledge(1)
	if p := inTime.receive(patience); !bytes.HasPrefix(p, []byte{0, opData, 0, 2}) {
		t.Fatalf("block 1 is followed by %q", p)
	}
	l.hold(t, 2)
	plain := newClient(t, l, "::1")
	plain.ask("ipxe.efi", "octet")
	if p := plain.receive(patience); !bytes.Equal(p, errorPacket(codeOther, "too many transfers, ask again")) {
		t.Errorf("a request whose answer is longer than itself is answered %q", p)
	}
	for range 2 {
		if got := newClient(t, l, "::1").fetch("ipxe.efi", "octet", "tsize", "0"); len(got.Body) != 1000 {
			t.Errorf("a client with options got %d bytes, error %q", len(got.Body), got.Error)
		}
	}
	inTime.acknowledge(2)
	l.counted(t, resultOK, 3)
	l.counted(t, resultTimeout, 1)
}

func TestErrorsAboutRequestsThatCannotBeReadAreLimited(t *testing.T) {
	now := time.Now()
	l := newLab(t, folder{"ipxe.efi": pattern(1000)}, func(s *Server) {
		s.answer = time.Second
		s.clock = func() time.Time { return now } // no second passes
	})
	busy, c := l.hold(t, 1)[0], newClient(t, l, "::1")
	for range 2 {
		busy.ask("ipxe.efi", "mail")
	}
	l.counted(t, resultRefused, 2)
	if p := busy.receive(patience); !bytes.Equal(p, errorPacket(codeIllegal, "use octet")) {
		t.Errorf("a client with a transfer is answered %q", p)
	}
	if p := busy.receive(50 * time.Millisecond); p != nil {
		t.Errorf("asked again at once, it is answered %q", p)
	}
	for range maxRefusals + 2 {
		c.ask("ipxe.efi", "mail")
	}
	l.counted(t, resultRefused, maxRefusals+4)
	for n := range maxRefusals - 1 { // one was sent already
		if p := c.receive(patience); p == nil {
			t.Fatalf("request %d is not answered", n)
		}
	}
	if p := c.receive(50 * time.Millisecond); p != nil {
		t.Errorf("more than %d within a second are answered: %q", maxRefusals, p)
	}
}

// A source address can be forged, so errors are few, whoever asks, and no longer than what
// firmware asks with.
func TestErrorsAboutLimitsFloodNobody(t *testing.T) {
	var r refusals
	sent := 0
	now := time.Now()
	for range 10 * maxRefusals {
		if r.allow(now) {
			sent++
		}
	}
	if sent != maxRefusals {
		t.Errorf("%d errors are sent within a second, want %d", sent, maxRefusals)
	}
	if !r.allow(now.Add(time.Second)) || !r.allow(now) {
		t.Error("none is sent a second later, or by a clock that was put back")
	}
	request := asked("undionly.kpxe", "octet", "tsize", "0", "blksize", "1456")
	s := &Server{maxPerAddress: 1, callers: map[netip.Addr]*caller{{}: {transfers: 1}}}
	for _, over := range []overLimit{s.overLimit(netip.Addr{}), s.overLimit(netip.IPv6Loopback())} {
		if packet := errorPacket(codeOther, over.text); over.text == "" || len(packet) > len(request) {
			t.Errorf("a request of %d bytes is answered with %d: %q", len(request), len(packet), packet)
		}
	}
}

func TestWhatIsToldOfTransfers(t *testing.T) {
	var mu sync.Mutex
	var told []string
	l := newLab(t, folder{"ipxe.efi": pattern(1000)}, func(s *Server) {
		s.answer, s.maxTransfers, s.maxPerAddress = time.Second, 1, 1
		s.told = func(client netip.Addr, events []model.CardEvent) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				told = append(told, fmt.Sprintf("%s %s %s %s: %s %q %d bytes", client, e.Protocol, e.From, e.Asked, e.Result, e.Answer, e.Bytes))
			}
		}
	})
	c := newClient(t, l, "127.0.0.1")
	c.fetch("ipxe.efi", "octet")
	l.counted(t, resultOK, 1)
	c.fetch("\x1b[2J"+strings.Repeat("x", 300), "octet")
	l.hold(t, 1)
	newClient(t, l, "127.0.0.1").fetch("/ipxe.efi", "octet")
	want := []string{
		`127.0.0.1 TFTP 127.0.0.1 ipxe.efi: served "" 1000 bytes`,
		`127.0.0.1 TFTP 127.0.0.1 ?[2J` + strings.Repeat("x", 60) + `: refused "not found" 0 bytes`,
		`127.0.0.1 TFTP 127.0.0.1 ipxe.efi: limited "too many from this address, ask again" 0 bytes`,
	}
	eventually(t, "all is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) >= len(want)
	})
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// T11: a row of machines is powered on in the same second.
func TestARowOfMachines(t *testing.T) {
	file := pattern(60_000)
	l := newLab(t, folder{"ipxe.efi": file}, func(s *Server) { s.answer = time.Second })
	var wg sync.WaitGroup
	for n := range 200 {
		// 127.0.x.y are all of this machine
		conn := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 1, byte(n))}))(t)
		t.Cleanup(func() { _ = conn.Close() })
		c := &client{t: t, conn: conn, to: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port}}
		wg.Go(func() {
			if got := c.fetch("ipxe.efi", "octet", "blksize", "1468"); !bytes.Equal(got.Body, file) {
				t.Errorf("client %d got %d bytes, %s", n, len(got.Body), got.Error)
			}
		})
	}
	wg.Wait()
	l.idle(t)
}

func TestStopping(t *testing.T) {
	l := newLab(t, folder{"ipxe.efi": pattern(5000)}, func(s *Server) { s.answer = 500 * time.Millisecond })
	c := newClient(t, l, "127.0.0.1")
	c.ask("ipxe.efi", "octet")
	c.receive(patience)
	c.acknowledge(1)
	c.receive(patience)
	start := time.Now()
	l.stop()
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("with a transfer under way it took %s to stop", took)
	}
	again := must.Get(New(Options{Loaders: folder{}}))(t)
	if err := again.Listen(t.Context(), fmt.Sprintf(":%d", l.port)); err != nil {
		t.Errorf("the port is not free afterwards: %v", err)
	}
	again.Close()
}

func TestListenThatFails(t *testing.T) {
	l := newLab(t, folder{}, nil)
	for address, want := range map[string]string{
		fmt.Sprintf("127.0.0.1:%d", l.port): "address already in use; stop the TFTP server that listens there",
		"192.0.2.1:0":                       "cannot assign requested address; this machine has no such address",
	} {
		s, err := New(Options{Loaders: folder{}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Listen(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "cannot listen on UDP "+address+": "+want) {
			t.Errorf("%s: %v", address, err)
		}
		if s.Addr() != nil || s.Run(t.Context()) == nil {
			t.Error("a server without a socket runs")
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a server without files is made")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(asked("ipxe.efi", "octet", "tsize", "0", "blksize", "1468"))
	f.Add(asked(`\boot\undionly.kpxe`+"\xff", "NETASCII", "windowsize", "4"))
	f.Add(asked("autoexec.ipxe", "octet", "blksize", "1432", "tsize", "0", "windowsize", "64"))
	f.Add(asked("pxelinux.cfg/01-02-00-00-00-00-01", "octet", "timeout", "5", "multicast", "", "blksize2", "2048"))
	f.Add(asked("boot.cfg", "mail", "BLKSIZE", "7", "windowsize", "0", "tsize", "-1"))
	f.Add([]byte{0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		r, wrong := parseRead(packet)
		if wrong != "" {
			return
		}
		if r.name == "" || strings.HasPrefix(cleanName(r.name), "/") || r.window < 0 || r.window > maxWindow {
			t.Fatalf("%q is read as %+v", packet, r)
		}
		client := netip.IPv6Loopback()
		answer := r.optionsPacket(client, 100_000)
		if answer == nil {
			answer = []byte{0, opOptions}
		}
		// what is granted, asked for, is what is granted
		again, wrong := parseRead(append(asked("x", r.mode), answer[2:]...))
		want := readRequest{name: "x", mode: r.mode, block: r.blockFor(client), window: r.window, size: r.size && r.mode == "octet"}
		if wrong != "" || again != want {
			t.Fatalf("%q is answered %q: %+v, want %+v", packet, answer, again, want)
		}
	})
}

func TestCloseWithoutRun(t *testing.T) {
	s := must.Get(New(Options{Loaders: folder{}}))(t)
	s.Close() // before Listen there is nothing to close
	must.Do(t, s.Listen(t.Context(), "127.0.0.1:0"))
	at := s.Addr().String()
	s.Close()
	s.Close()
	c, err := net.ListenPacket("udp4", at)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = c.Close()
}

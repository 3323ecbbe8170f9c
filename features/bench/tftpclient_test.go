package bench

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tftpVariable tells this program to be TFTP clients.
const tftpVariable = "TFTP_BENCH_CLIENTS"

// tftpOrder is what TFTP clients are to fetch.
type tftpOrder struct {
	Server  netip.AddrPort
	First   netip.Addr // address of the first client; the others have those that follow
	Clients int
	Files   int // that each fetches, one after the other
	Name    string
	Size    int
	Window  int // blocks at a time, 0 = it asks for no number
}

// runTFTP fetches what it is told, and writes how long that took. It returns its exit
// code.
func runTFTP(in io.Reader, out, log io.Writer) int {
	var order tftpOrder
	err := json.NewDecoder(in).Decode(&order)
	start := time.Now()
	if err == nil {
		err = order.fetchAll()
	}
	if err != nil {
		fmt.Fprintln(log, "TFTP clients:", err)
		return 1
	}
	fmt.Fprintln(out, time.Since(start).Nanoseconds())
	return 0
}

// fetchAll fetches with all clients at once.
func (o tftpOrder) fetchAll() error {
	failed := make([]error, o.Clients)
	var clients sync.WaitGroup
	from := o.First
	for i := range failed {
		at := from
		from = from.Next()
		clients.Go(func() {
			for range o.Files {
				if failed[i] == nil {
					failed[i] = o.fetch(at)
				}
			}
		})
	}
	clients.Wait()
	return errors.Join(failed...)
}

// fetch fetches the file once, from a port of its own, as firmware does.
func (o tftpOrder) fetch(from netip.Addr) error {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	t := tftpFetch{conn: conn, window: 1, last: o.request(), to: o.Server}
	packet := make([]byte, 2048)
	for tries := 0; !t.done; {
		if err := t.answer(); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		for t.waits = true; t.waits && !t.done; {
			n, at, err := conn.ReadFromUDPAddrPort(packet)
			if errors.Is(err, os.ErrDeadlineExceeded) && tries < 10 {
				tries++
				break // what was said last is said again
			}
			if err == nil {
				err = t.take(packet[:n], at)
			}
			if err != nil {
				return err
			}
		}
	}
	if t.size != o.Size {
		return fmt.Errorf("%d bytes came, not %d", t.size, o.Size)
	}
	return t.answer()
}

// request returns the read request (RFC 1350 §5, RFC 2347).
func (o tftpOrder) request() []byte {
	fields := []string{o.Name, "octet", "blksize", strconv.Itoa(tftpBlock)}
	if o.Window > 0 {
		fields = append(fields, "windowsize", strconv.Itoa(o.Window))
	}
	return []byte("\x00\x01" + strings.Join(fields, "\x00") + "\x00")
}

// tftpFetch is a file on its way.
type tftpFetch struct {
	conn     *net.UDPConn
	to       netip.AddrPort
	last     []byte // what is said next, or was said last
	window   int
	received int64 // blocks
	size     int
	waits    bool // for more, before anything is said
	done     bool
}

func (t *tftpFetch) answer() error {
	_, err := t.conn.WriteToUDPAddrPort(t.last, t.to)
	return err
}

// take takes what the server said.
func (t *tftpFetch) take(packet []byte, from netip.AddrPort) error {
	if len(packet) < 4 {
		return fmt.Errorf("it says %q", packet)
	}
	switch number := binary.BigEndian.Uint16(packet[2:]); {
	case packet[1] == 6: // options are granted
		t.window = granted(packet)
		t.last, t.waits = []byte{0, 4, 0, 0}, false
	case packet[1] != 3:
		return fmt.Errorf("it says %q", packet)
	case number != uint16(t.received+1): // it came twice, or one before it was lost
		return nil
	default:
		t.received++
		t.size += len(packet) - 4
		t.done = len(packet) < 4+tftpBlock
		t.last = append([]byte{0, 4}, packet[2:4]...)
		t.waits = t.received%int64(t.window) != 0
	}
	t.to = from
	return nil
}

// granted returns the window of an answer to options (RFC 7440).
func granted(packet []byte) int {
	fields := strings.Split(strings.ToLower(string(packet[2:])), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if n, err := strconv.Atoi(fields[i+1]); err == nil && fields[i] == "windowsize" {
			return max(1, n)
		}
	}
	return 1
}

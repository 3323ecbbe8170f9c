package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ingot/model/must"
)

// BenchmarkTransfer fetches a boot loader of 1 MB over loopback, in turn from Ingot
// and from dnsmasq, which is the yardstick: ratio is Ingot's time divided by
// dnsmasq's, of the medians, for a busy machine delays some of either.
func BenchmarkTransfer(b *testing.B) {
	file := pattern(1 << 20)
	l := newLab(b, folder{"ipxe.efi": file}, func(s *Server) { s.answer = answerTime })
	ours := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(l.port))
	yardstick, why := startDnsmasq(b, "ipxe.efi", file)
	if why != "" {
		b.Logf("WITHOUT YARDSTICK: %s", why)
	}
	conn := must.Get(net.ListenUDP("udp4", nil))(b)
	defer conn.Close()
	var mine, theirs []time.Duration
	b.SetBytes(int64(len(file)))
	b.ResetTimer()
	for range b.N {
		mine = append(mine, timed(b, conn, ours, file))
		if why == "" {
			b.StopTimer()
			theirs = append(theirs, timed(b, conn, yardstick, file))
			b.StartTimer()
		}
	}
	b.ReportMetric(median(mine), "ingot-ms")
	if why == "" {
		b.ReportMetric(median(theirs), "dnsmasq-ms")
		b.ReportMetric(median(mine)/median(theirs), "ratio")
	}
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

func timed(b *testing.B, conn *net.UDPConn, from netip.AddrPort, want []byte) time.Duration {
	b.Helper()
	start := time.Now()
	got, err := quickly(conn, from)
	if took := time.Since(start); err == nil && bytes.Equal(got, want) {
		return took
	}
	b.Fatalf("%d bytes from %s, %v", len(got), from, err)
	return 0
}

func quickly(conn *net.UDPConn, from netip.AddrPort) ([]byte, error) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.WriteToUDPAddrPort(asked("ipxe.efi", "octet", "tsize", "0", "blksize", "1468"), from); err != nil {
		return nil, err
	}
	body := make([]byte, 0, 2<<20)
	packet, acknowledgement := make([]byte, 2048), []byte{0, opAcknowledge, 0, 0}
	for next := uint16(0); ; {
		n, at, err := conn.ReadFromUDPAddrPort(packet)
		switch {
		case err != nil:
			return body, err
		case n < 4 || packet[1] == opError:
			return body, fmt.Errorf("it answers %q", packet[:n])
		case packet[1] == opData && binary.BigEndian.Uint16(packet[2:]) != next, packet[1] == opOptions && next != 0:
			continue
		}
		binary.BigEndian.PutUint16(acknowledgement[2:], next)
		if _, err := conn.WriteToUDPAddrPort(acknowledgement, at); err != nil {
			return body, err
		}
		if packet[1] == opData {
			body = append(body, packet[4:n]...)
			if n < 4+1468 {
				return body, nil
			}
		}
		next++
	}
}

// startDnsmasq serves a file by dnsmasq's TFTP at an address of loopback's that is
// nobody else's, or says why it cannot. dnsmasq knows no port but 69, and in its
// mode of a single port it does not find the way back to loopback.
func startDnsmasq(b *testing.B, name string, contents []byte) (at netip.AddrPort, why string) {
	b.Helper()
	path, err := exec.LookPath("dnsmasq")
	if err != nil {
		return at, "dnsmasq is not installed"
	}
	pid := os.Getpid()
	at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 69, byte(pid >> 8), byte(pid)}), 69)
	probe, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return at, "port 69 cannot be bound: " + err.Error()
	}
	_ = probe.Close()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), contents, 0o644); err != nil { //nolint:gosec // dnsmasq serves nothing else
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root", "--port=0",
		"--bind-interfaces", "--listen-address="+at.Addr().String(), "--enable-tftp", "--tftp-root="+dir, "--quiet-tftp")
	if err := cmd.Start(); err != nil {
		stop()
		return at, err.Error()
	}
	b.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	return at, answers(b, at)
}

// answers waits until a server answers, and says why not if it never does.
func answers(b *testing.B, at netip.AddrPort) (why string) {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		conn, err := net.ListenUDP("udp4", nil) // it answers from another port
		if err != nil {
			return err.Error()
		}
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = conn.WriteToUDPAddrPort(asked("nothing", "octet"), at)
		_, err = conn.Read(make([]byte, 600))
		_ = conn.Close()
		if err == nil {
			return ""
		}
	}
	return "dnsmasq does not answer"
}

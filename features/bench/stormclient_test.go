package bench

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

const stormVariable = "BOOT_BENCH_STORM"

const (
	stormWithin  = 10 * time.Second // in which all machines are switched on
	stormPatient = 3 * time.Minute  // until a machine gives up
	tftpBlock    = 1468             // bytes, as EDK2 asks for
)

// stormOrder is the work of the process that plays the machines.
type stormOrder struct {
	Machines []stormMachine
	Loader   int64 // bytes of the boot loader
}

type stormMachine struct {
	UUID string
	MAC  net.HardwareAddr
}

type stormResult struct {
	Booted   int
	Took     time.Duration
	Problems []string // the first ones
}

// runStorm plays machines that boot, at the clients' end of a link. It returns its exit code.
func runStorm(in io.Reader, out, log io.Writer) int {
	var order stormOrder
	err := json.NewDecoder(in).Decode(&order)
	if err == nil {
		var result stormResult
		if result, err = order.boot(); err == nil {
			err = json.NewEncoder(out).Encode(result)
		}
	}
	if err != nil {
		fmt.Fprintln(log, "machines:", err)
		return 1
	}
	return 0
}

func (o stormOrder) boot() (result stormResult, err error) {
	relay, err := newStormRelay()
	if err != nil {
		return result, err
	}
	defer relay.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stormPatient)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	var machines sync.WaitGroup
	for n, m := range o.Machines {
		machines.Go(func() {
			time.Sleep(stormWithin * time.Duration(n) / time.Duration(len(o.Machines)))
			err := m.boot(ctx, relay, uint32(n+1), o.Loader)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				result.Booted++
			case len(result.Problems) < 5:
				result.Problems = append(result.Problems, m.UUID+": "+err.Error())
			}
		})
	}
	machines.Wait()
	result.Took = time.Since(began)
	return result, nil
}

// boot does what firmware, iPXE and the initramfs of a machine do.
func (m stormMachine) boot(ctx context.Context, relay *stormRelay, id uint32, loader int64) error {
	ack, err := relay.lease(ctx, m, id)
	if err != nil {
		return err
	}
	server, file := ack.ServerIPAddr.String(), ack.BootFileNameOption()
	if file == "" {
		file = ack.BootFileName
	}
	if n, err := fetchTFTP(ctx, ack.YourIPAddr, server, file); err != nil || n != loader {
		return fmt.Errorf("TFTP of %s from %s: %d of %d bytes: %w", file, server, n, loader, err)
	}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: ack.YourIPAddr}}).DialContext}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport}
	script, err := fetchText(ctx, web, "http://"+stormHTTP+"/ipxe/"+m.UUID)
	if err != nil {
		return err
	}
	kernel, config := wordAfter(script, "set kernel-url "), wordAfter(script, "ignition.config.url=")
	n, err := fetchHTTP(ctx, web, kernel, io.Discard)
	if err == nil && n != stormKernel {
		err = fmt.Errorf("the kernel has %d bytes", n)
	}
	if err == nil {
		_, err = fetchText(ctx, web, config)
	}
	return err
}

// wordAfter returns the word behind a text, empty if it is not there.
func wordAfter(s, before string) string {
	_, rest, _ := strings.Cut(s, before)
	word, _, _ := strings.Cut(rest, "\n")
	word, _, _ = strings.Cut(word, " ")
	return word
}

func fetchText(ctx context.Context, web *http.Client, url string) (string, error) {
	var text strings.Builder
	_, err := fetchHTTP(ctx, web, url, &text)
	return text.String(), err
}

func fetchHTTP(ctx context.Context, web *http.Client, url string, into io.Writer) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return 0, fmt.Errorf("%s: %s: %s", url, resp.Status, why)
	}
	return io.Copy(into, resp.Body)
}

// stormRelay passes machines' packets on to the DHCP server (RFC 1542 §4).
type stormRelay struct {
	conn   *net.UDPConn
	server *net.UDPAddr

	mu      sync.Mutex
	answers map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4
}

func newStormRelay() (*stormRelay, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(stormRelay4), dhcpv4.ServerPort)))
	if err != nil {
		return nil, err
	}
	r := &stormRelay{
		conn: conn, answers: make(map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4),
		server: &net.UDPAddr{IP: net.ParseIP(serverAddress), Port: dhcpv4.ServerPort},
	}
	go r.read()
	return r, conn.SetReadBuffer(4 << 20)
}

func (r *stormRelay) read() {
	packet := make([]byte, 1500)
	for {
		n, err := r.conn.Read(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		answer, err := dhcpv4.FromBytes(packet[:n])
		if err != nil {
			continue
		}
		r.mu.Lock()
		to := r.answers[answer.TransactionID]
		r.mu.Unlock()
		select {
		case to <- answer:
		default: // a second answer
		}
	}
}

func (r *stormRelay) lease(ctx context.Context, m stormMachine, id uint32) (*dhcpv4.DHCPv4, error) {
	var xid dhcpv4.TransactionID
	binary.BigEndian.PutUint32(xid[:], id)
	answers := make(chan *dhcpv4.DHCPv4, 1)
	r.mu.Lock()
	r.answers[xid] = answers
	r.mu.Unlock()
	uuid, err := hex.DecodeString(strings.ReplaceAll(m.UUID, "-", ""))
	if err != nil {
		return nil, err
	}
	common := []dhcpv4.Modifier{
		dhcpv4.WithTransactionID(xid), dhcpv4.WithGatewayIP(net.ParseIP(stormRelay4)),
		dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64)),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003016")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, append([]byte{0}, uuid...)),
		dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1472)),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer,
			dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName),
	}
	discover, err := dhcpv4.NewDiscovery(m.MAC, common...)
	if err != nil {
		return nil, err
	}
	offer, err := r.exchange(ctx, discover, answers)
	if err != nil {
		return nil, fmt.Errorf("no offer: %w", err)
	}
	request, err := dhcpv4.NewRequestFromOffer(offer, common...)
	if err != nil {
		return nil, err
	}
	ack, err := r.exchange(ctx, request, answers)
	if err == nil && ack.MessageType() != dhcpv4.MessageTypeAck {
		err = errors.New("it is " + ack.MessageType().String())
	}
	if err != nil {
		return nil, fmt.Errorf("no ACK: %w", err)
	}
	return ack, nil
}

// exchange sends a packet until it is answered (RFC 2131 §4.1).
func (r *stormRelay) exchange(ctx context.Context, p *dhcpv4.DHCPv4, answers <-chan *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, error) {
	for wait := 4 * time.Second; ; wait = min(2*wait, 32*time.Second) {
		if _, err := r.conn.WriteTo(p.ToBytes(), r.server); err != nil {
			return nil, err
		}
		select {
		case answer := <-answers:
			return answer, nil
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Packets of TFTP (RFC 1350 §5, RFC 2347).
const (
	tftpRead  = 1
	tftpData  = 3
	tftpAck   = 4
	tftpError = 5
	tftpOACK  = 6
)

// fetchTFTP reads a file as EDK2 does, and returns its size.
func fetchTFTP(ctx context.Context, from net.IP, server, file string) (size int64, err error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: from})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	to := &net.UDPAddr{IP: net.ParseIP(server), Port: 69}
	send := fmt.Appendf([]byte{0, tftpRead}, "%s\x00octet\x00tsize\x000\x00blksize\x00%d\x00", file, tftpBlock)
	packet := make([]byte, 4+tftpBlock)
	want := uint16(1) // block
	for ctx.Err() == nil {
		if _, err := conn.WriteTo(send, to); err != nil {
			return size, err
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second)) // it is open
		n, peer, err := conn.ReadFromUDP(packet)
		if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			continue // and is sent again
		}
		if err != nil {
			return size, err
		}
		if n < 4 {
			continue
		}
		switch block := binary.BigEndian.Uint16(packet[2:]); packet[1] {
		case tftpError:
			return size, fmt.Errorf("%.200q", packet[4:n])
		case tftpOACK:
			to, send = peer, []byte{0, tftpAck, 0, 0}
		case tftpData:
			if block != want {
				continue
			}
			to, send = peer, []byte{0, tftpAck, packet[2], packet[3]}
			want++
			size += int64(n - 4)
			if n < len(packet) {
				_, err := conn.WriteTo(send, to)
				return size, err
			}
		}
	}
	return size, ctx.Err()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

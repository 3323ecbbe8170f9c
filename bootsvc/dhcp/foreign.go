package dhcp

import (
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

const (
	// maxForeign bounds the warnings about other DHCP servers, whose addresses can be made up.
	maxForeign = 64
	// maxOverheard is how many packets are read at once. The kernel drops the others.
	maxOverheard = 256
)

// foreignServers are the warnings about other DHCP servers, each of which is logged once.
type foreignServers struct {
	mu     sync.Mutex
	warned map[foreignServer]bool
}

type foreignServer struct {
	network, reason string
	address         netip.Addr
}

func (f *foreignServers) isNew(s foreignServer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warned[s] || len(f.warned) >= maxForeign {
		return false
	}
	if f.warned == nil {
		f.warned = make(map[foreignServer]bool)
	}
	f.warned[s] = true
	return true
}

// warnForeign warns once that another DHCP server interferes with machines that boot.
func (n *network) warnForeign(reason string, server netip.Addr, mac string, facts ...any) {
	if server.IsValid() && n.server.foreign.isNew(foreignServer{n.Name, reason, server}) {
		n.server.options.Log.Warn("another DHCP server interferes with booting",
			append([]any{"network", n.Name, "server", server, "mac", mac, "reason", reason}, facts...)...)
	}
}

// noteForeignLease notes that a client requests its address from another server. In mode server a machine that boots
// should take Ingot's. In mode proxy iPXE should then fetch its script. It does not if that server, too, gives it a boot
// file: then it loads iPXE, which asks again.
func (n service4) noteForeignLease(p packet4, now time.Time) {
	n.server.options.Heard.Asked(p.mac, p.wish())
	c, server := client4(p), address4(p.Options.Get(dhcpv4.OptionServerIdentifier))
	switch {
	case c.Kind == netboot.KindNone, !n.Boots(), n.server.options.Tickets == nil:
	case n.Mode != ModeProxy:
		n.warnForeign("a machine that boots takes its address", server, p.mac)
	case c.Kind == netboot.KindIPXE:
		if holder, ok := n.offerTo(c); ok && holder.Ticket.Open() && !n.server.ignored.Allow(holder, now) {
			n.warnForeign("iPXE does not fetch its script, and may boot what that server offers", server, p.mac)
		}
	}
}

// openOffers returns a socket for the answers of DHCP servers to clients on a link. Sockets for port 67 do not receive
// them. An answer that its server sends to its client alone is not seen.
func openOffers(index int) (*os.File, error) { return listenFrames(index, offers4, 0) }

// offers4 lets UDP packets over IPv4 from port 67 to port 68 pass.
var offers4 = filterOf(
	bpf.LoadExtension{Num: bpf.ExtProto},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: 8},
	bpf.LoadAbsolute{Off: 9, Size: 1}, // protocol
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 6},
	bpf.LoadAbsolute{Off: 6, Size: 2}, // flags and fragment offset
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: 4},
	bpf.LoadMemShift{Off: 0},
	bpf.LoadIndirect{Off: 0, Size: 4}, // both ports
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: port4Server<<16 | port4Client, SkipTrue: 1},
	bpf.RetConstant{Val: maxPacket},
	bpf.RetConstant{Val: 0},
)

// overhear reads the answers of other DHCP servers that came in since.
func (n service4) overhear() {
	c := n.sockets.v4.Load()
	if c == nil || c.offers == nil {
		return
	}
	var buf [maxPacket]byte
	_ = socket.Control(c.offers, func(fd int) error {
		for range maxOverheard {
			size, _, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
			if err != nil {
				return err
			}
			n.overheard(buf[:size])
		}
		return nil
	})
}

// overheard warns if an IPv4 packet from a DHCP server offers a boot file.
func (n service4) overheard(packet []byte) {
	defer n.recoverPanic(false, netip.AddrPort{})
	header := 4 * int(packet[0]&0xf)
	p, err := dhcpv4.FromBytes(packet[min(header+headerUDP, len(packet)):])
	if err != nil || p.OpCode != dhcpv4.OpcodeBootReply {
		return
	}
	file, server := p.BootFileNameOption(), address4(p.Options.Get(dhcpv4.OptionServerIdentifier))
	if file == "" {
		file = p.BootFileName
	}
	if file == "" || n.server.isOwn(server) {
		return
	}
	n.metrics.packet("4", "offer", "other server")
	n.warnForeign("it offers a boot file", server, p.ClientHWAddr.String(), "file", model.ReadableIdentifier(file))
}

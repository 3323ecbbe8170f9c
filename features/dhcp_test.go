package features

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/features/internal/rig"
	"ingot/model"
)

// network is one network that Ingot serves. Its devices are behind a relay, for
// only a relay may be heard from any port, and be anybody's (RFC 8357).
type network struct {
	name      string
	role      model.NetworkRole
	subnet    netip.Prefix // of the loopback network: all of it is this machine's
	addresses int          // in the range
	refuses   string       // beginning of MAC addresses that are not served
	server    string       // where Ingot hears relays
}

const firstAddress = 100

func newNetwork(number int, name string, role model.NetworkRole) *network {
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, byte(10 + number), 0, 0}), 24)
	return &network{name: name, role: role, subnet: subnet, addresses: 50, server: freeUDPAddress()}
}

// freeUDPAddress is an address on which nobody hears packets, for now.
func freeUDPAddress() string {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0" // Ingot will say why that is no good
	}
	defer c.Close()
	return c.LocalAddr().String()
}

func (n *network) address(number int) netip.Addr {
	a := n.subnet.Addr().As4()
	a[3] = byte(number)
	return netip.AddrFrom4(a)
}

func (n *network) relay() netip.Addr { return n.address(1) }

func (n *network) reserved() netip.Addr { return n.address(50) }

func (n *network) configuration() string {
	refuses := ""
	if n.refuses != "" {
		refuses = fmt.Sprintf(", macDeny: [%q]", n.refuses)
	}
	return fmt.Sprintf("- {name: %s, listen: %q, relays: [%s], role: %s%s, subnets: [{cidr: %s, ranges: [%s-%s]}]}\n",
		n.name, n.server, n.relay(), n.role, refuses, n.subnet, n.address(firstAddress), n.address(firstAddress+n.addresses-1))
}

// device is something with a network interface: a BMC, a server, or neither.
type device struct {
	name    string // in the scenario
	mac     string
	uuid    string // of a server
	network *network
	address netip.Addr // that it has, invalid for none
	had     netip.Addr // that it had before it last asked
	client  []byte     // its client identifier
	port    string     // of the relay, that it is plugged into; "" when the relay does not say
	shows   []byte     // the client identifier that it always shows; nil = another each time
	before  netip.Addr // that another DHCP server gave it
	told    *dhcpv4.DHCPv4
}

// device returns the device that the scenario calls by name: a BMC, a machine, a
// MAC address, or something that nobody knows.
func (w *site) device(name string) (*device, error) {
	if d := w.devices[name]; d != nil {
		return d, nil
	}
	d := &device{name: name, mac: fmt.Sprintf("02:00:00:00:00:%02x", len(w.devices)+1), client: newClientID()}
	role := model.RoleBMC
	if mac, err := model.CanonicalMAC(name); err == nil {
		d.mac = mac
	}
	if b := w.bmcs[name]; b != nil {
		d.mac = b.MAC()
	}
	if m := w.machines[name]; m != nil {
		d.mac, d.uuid, role = m.MAC(0), m.UUID(), model.RoleHost
	}
	for _, n := range w.networks {
		if d.network == nil && (n.role == role || len(w.networks) == 1) {
			d.network = n
		}
	}
	if d.network == nil {
		return nil, fmt.Errorf("the scenario has no network for %q", name)
	}
	w.devices[name] = d
	return d, nil
}

func newClientID() []byte { return fmt.Appendf([]byte{0}, "%016x", rand.Uint64()) }

func (d *device) request(kind dhcpv4.MessageType, wish netip.Addr, more ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	hw, err := net.ParseMAC(d.mac)
	if err != nil {
		return nil, err
	}
	told := []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.RelaySourcePortSubOption, []byte{0, 0})}
	if d.port != "" {
		told = append(told, dhcpv4.OptGeneric(dhcpv4.AgentCircuitIDSubOption, []byte(d.port)))
	}
	all := []dhcpv4.Modifier{
		dhcpv4.WithHwAddr(hw), dhcpv4.WithMessageType(kind), dhcpv4.WithRelay(net.IP(d.network.relay().AsSlice())),
		dhcpv4.WithOption(dhcpv4.OptRelayAgentInfo(told...)),
		dhcpv4.WithOption(dhcpv4.OptClientIdentifier(d.client)),
	}
	if wish.IsValid() {
		all = append(all, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IP(wish.AsSlice()))))
	}
	return dhcpv4.New(append(all, more...)...)
}

// errSilent is that nobody answered.
var errSilent = errors.New("DHCP does not answer")

func (n *network) send(p *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, error) {
	server, err := net.ResolveUDPAddr("udp4", n.server)
	if err != nil {
		return nil, err
	}
	relay, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IP(n.relay().AsSlice())})
	if err != nil {
		return nil, err
	}
	defer relay.Close()
	if _, err := relay.WriteToUDP(p.ToBytes(), server); err != nil {
		return nil, err
	}
	if err := relay.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return nil, err
	}
	for buffer := make([]byte, 1500); ; {
		size, _, err := relay.ReadFromUDP(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errSilent
		}
		if err != nil {
			return nil, err
		}
		answer, err := dhcpv4.FromBytes(buffer[:size])
		if err == nil && answer.TransactionID == p.TransactionID {
			return answer, nil
		}
	}
}

func (d *device) ask(kind, want dhcpv4.MessageType, wish netip.Addr, more ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	p, err := d.request(kind, wish, more...)
	if err != nil {
		return nil, err
	}
	answer, err := d.network.send(p)
	if err == nil && answer.MessageType() != want {
		err = fmt.Errorf("DHCP answers %s to %s, not %s", answer.MessageType(), kind, want)
	}
	return answer, err
}

// acquire asks for an address until the device has one, as devices do. The client
// identifier is another one each time, as those of firmware, boot loader and
// operating system are.
func (d *device) acquire(wish netip.Addr, more ...dhcpv4.Modifier) (answer *dhcpv4.DHCPv4, err error) {
	if d.client = d.shows; d.client == nil {
		d.client = newClientID()
	}
	err = rig.Within(patience, func() error {
		offer, err := d.ask(dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeOffer, wish, more...)
		if err != nil {
			return err
		}
		offered, _ := netip.AddrFromSlice(offer.YourIPAddr.To4())
		named := append([]dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier()))}, more...)
		answer, err = d.ask(dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeAck, offered, named...)
		return err
	})
	if err == nil {
		d.hold(answer)
	}
	return answer, err
}

func (d *device) hold(answer *dhcpv4.DHCPv4) {
	d.had, d.told = d.address, answer
	d.address, _ = netip.AddrFromSlice(answer.YourIPAddr.To4())
}

// resume asks for the address that the device has (RFC 2131 §3.2).
func (d *device) resume() error {
	return rig.Within(patience, func() error {
		answer, err := d.ask(dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeAck, d.address)
		if err == nil {
			d.hold(answer)
		}
		return err
	})
}

// release gives the address back. Nobody answers that.
func (d *device) release() error {
	_, err := d.ask(dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeNone, netip.Addr{},
		dhcpv4.WithClientIP(net.IP(d.address.AsSlice())), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(127, 0, 0, 1))))
	if errors.Is(err, errSilent) {
		return nil
	}
	return err
}

// firmwares are what asks to boot: vendor class, architecture and user class.
var firmwares = map[string]struct {
	class, user string
	arch        byte
}{
	"BIOS":             {"PXEClient:Arch:00000:UNDI:002001", "", 0},
	"UEFI x64":         {"PXEClient:Arch:00007:UNDI:003016", "", 7},
	"UEFI arm64":       {"PXEClient:Arch:00011:UNDI:003000", "", 11},
	"UEFI x64 by HTTP": {"HTTPClient:Arch:00016:UNDI:003001", "", 16},
	"iPXE":             {"PXEClient:Arch:00007:UNDI:003016", "iPXE", 7},
}

func (d *device) boots(firmware string) ([]dhcpv4.Modifier, error) {
	f, ok := firmwares[firmware]
	if !ok {
		return nil, fmt.Errorf("there is no firmware %q", firmware)
	}
	uuid, err := hex.DecodeString(strings.ReplaceAll(d.uuid, "-", ""))
	if err != nil {
		return nil, err
	}
	options := []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(f.class)),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, f.arch}),
		dhcpv4.WithGeneric(dhcpv4.OptionClientNetworkInterfaceIdentifier, []byte{1, 3, 16}),
		dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, append([]byte{0}, uuid...)),
	}
	if f.user != "" {
		options = append(options, dhcpv4.WithUserClass(f.user, false))
	}
	return options, nil
}

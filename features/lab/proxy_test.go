package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// proxyNetwork is the rack's link when somebody else gives its addresses.
const proxyNetwork = `
dhcp:
- {name: rack, interface: br0, role: host, mode: proxy}
`

func offers(t *testing.T, on *rig.Namespace, options ...dhcpv4.Modifier) (all []*dhcpv4.DHCPv4) {
	t.Helper()
	hardware, err := net.ParseMAC(on.MAC)
	if err != nil {
		t.Fatal(err)
	}
	var c *nclient4.Client
	must.Do(t, on.Do(func() (err error) {
		c, err = nclient4.New(device, nclient4.WithHWAddr(hardware), nclient4.WithRetry(1), nclient4.WithTimeout(2*time.Second))
		return err
	}))
	defer c.Close()
	discover := must.Get(dhcpv4.NewDiscovery(hardware, options...))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	// the match is never final: all that comes is collected
	_, err = c.SendAndRead(ctx, nclient4.DefaultServers, discover, func(p *dhcpv4.DHCPv4) bool {
		if p.MessageType() == dhcpv4.MessageTypeOffer {
			all = append(all, p)
		}
		return false
	})
	if err == nil || errors.Is(err, os.ErrClosed) {
		t.Fatalf("ask for offers: %v", err)
	}
	return all
}

func firmware(machine string, arch uint16) []dhcpv4.Modifier {
	id := uuid.MustParse(machine)
	return []dhcpv4.Modifier{
		dhcpv4.WithBroadcast(true),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(fmt.Sprintf("PXEClient:Arch:%05d:UNDI:003016", arch))),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{byte(arch >> 8), byte(arch)}),
		dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, append([]byte{0}, id[:]...)),
		dhcpv4.WithRequestedOptions(dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName, dhcpv4.OptionVendorSpecificInformation),
	}
}

func TestProxyBesideAnotherServer(t *testing.T) {
	rig.Need(t, rig.ToolDnsmasq)
	rig.NeedFile(t, rig.LoaderFolder+"/undionly.kpxe", "ipxe")
	t.Parallel()
	r := newRack(t)
	startDnsmasq(t, r.other(t), "--dhcp-range=10.77.1.200,10.77.1.210,1h")
	facts := r.server.StartRack(t, rig.RackOrder{BootURL: "http://127.0.0.1:1", Delays: sim.FastDelays()})
	i := rig.NewIngot(t, r.server, proxyNetwork+fmt.Sprintf("tftp: {listen: \":69\"}\ndiscovery: {image: %q}\n", pretendedProbe(t, r.server)))
	i.CommitRack(t, facts)
	i.Start(t)
	server := facts.Servers[0]
	i.StatusHas(t, rig.Patience, "servers/"+server.Name+".yaml", "Discovery")
	host := r.host(t, false, server.MAC)

	var ours *dhcpv4.DHCPv4
	t.Run("firmware is given its address by the other server, and its boot file by Ingot", func(t *testing.T) {
		var theirs *dhcpv4.DHCPv4
		for _, o := range offers(t, host, firmware(server.UUID, 7)...) {
			if o.ServerIdentifier().String() == rig.ServerAddress {
				ours = o
			} else {
				theirs = o
			}
		}
		if ours == nil || theirs == nil {
			t.Fatalf("Ingot offers %v, and the other server %v", ours, theirs)
		}
		if !ours.YourIPAddr.IsUnspecified() || ours.ClassIdentifier() != "PXEClient" || bootFileOf(ours) != "ipxe.efi" {
			t.Errorf("Ingot offers %s", ours.Summary())
		}
		if theirs.YourIPAddr.IsUnspecified() || bootFileOf(theirs) != "" {
			t.Errorf("the other server offers %s", theirs.Summary())
		}
	})
	t.Run("a device that does not boot is offered nothing by Ingot", func(t *testing.T) {
		for _, o := range offers(t, host, dhcpv4.WithBroadcast(true)) {
			if o.ServerIdentifier().String() == rig.ServerAddress {
				t.Errorf("Ingot offers %s", o.Summary())
			}
		}
	})
	t.Run("firmware without a ticket is offered nothing by Ingot", func(t *testing.T) {
		stranger := r.nextHost(t, false)
		for _, o := range offers(t, stranger, firmware(uuid.NewString(), 7)...) {
			if o.ServerIdentifier().String() == rig.ServerAddress {
				t.Errorf("Ingot offers %s", o.Summary())
			}
		}
	})
	t.Run("an operating system uses the other server's lease", func(t *testing.T) {
		c := newClient(t, udhcpc, host)
		c.start(t)
		if got := c.mustAwait(t); got.Address.Compare(netip.MustParseAddr("10.77.1.200")) < 0 {
			t.Errorf("was given %s, want one of dnsmasq's", got.Address)
		}
	})
	t.Run("firmware that asks on port 4011 is told its boot file", func(t *testing.T) {
		answer := askPort4011(t, host, firmware(server.UUID, 7))
		if answer.MessageType() != dhcpv4.MessageTypeAck || bootFileOf(answer) != "ipxe.efi" || !answer.YourIPAddr.IsUnspecified() {
			t.Errorf("Ingot answers %s", answer.Summary())
		}
	})
}

// otherAddress is where the DHCP server of somebody else is.
const otherAddress = "10.77.1.5"

// other makes the namespace of a DHCP server of somebody else, on the rack's link.
func (r *rack) other(t *testing.T) *rig.Namespace {
	t.Helper()
	n := rig.NewNamespace(t, "other")
	n.Bridge(rig.BridgeName, otherAddress+"/24")
	joinBridges(t, n, r.server)
	return n
}

func bootFileOf(p *dhcpv4.DHCPv4) string {
	if name := p.BootFileNameOption(); name != "" {
		return strings.TrimRight(name, "\x00")
	}
	return p.BootFileName
}

func joinBridges(t *testing.T, a, b *rig.Namespace) {
	t.Helper()
	a.Plug("uplink", rig.MAC(0xee), b, rig.BridgeName)
	a.IP("link", "set", "uplink", "master", rig.BridgeName)
}

// askPort4011 asks as UEFI does once it has an address: from there, by unicast.
func askPort4011(t *testing.T, on *rig.Namespace, options []dhcpv4.Modifier) (answer *dhcpv4.DHCPv4) {
	t.Helper()
	hardware, err := net.ParseMAC(on.MAC)
	if err != nil {
		t.Fatal(err)
	}
	err = on.Do(func() error {
		c, err := net.DialUDP("udp4", &net.UDPAddr{Port: 68}, &net.UDPAddr{IP: net.ParseIP(rig.ServerAddress), Port: 4011})
		if err != nil {
			return err
		}
		defer c.Close()
		own := c.LocalAddr().(*net.UDPAddr).IP
		request, err := dhcpv4.New(append([]dhcpv4.Modifier{
			dhcpv4.WithHwAddr(hardware), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(own),
		}, options...)...)
		if err != nil {
			return err
		}
		request.SetUnicast()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := c.Write(request.ToBytes()); err != nil {
			return err
		}
		buffer := make([]byte, 1500)
		n, err := c.Read(buffer)
		if err != nil {
			return err
		}
		answer, err = dhcpv4.FromBytes(buffer[:n])
		return err
	})
	if err != nil {
		t.Fatalf("ask port 4011: %v", err)
	}
	return answer
}

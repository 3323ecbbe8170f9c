package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/netboot/netboottest"
	"ingot/features/internal/rig"
	"ingot/model"
)

// called is Ingot's name for what the scenario calls by another: what nobody typed
// a name for is named after its MAC address.
func (w *site) called(name string) string {
	if found := w.found[name]; found != "" {
		return found
	}
	if m := w.machines[name]; m != nil && w.found[m.bmc] != "" {
		_, number, _ := strings.Cut(string(m.Name()), "-system-")
		return w.found[m.bmc] + "-system-" + number
	}
	return name
}

func theNetworks(ctx context.Context, table *godog.Table) error {
	if err := known(table, "NETWORK", "FOR", "ADDRESSES", "REFUSES"); err != nil {
		return err
	}
	w := siteOf(ctx)
	for i, row := range rows(table) {
		role, ok := map[string]model.NetworkRole{"BMCs": model.RoleBMC, "servers": model.RoleHost}[row["FOR"]]
		if !ok {
			return fmt.Errorf("a network is for BMCs or servers, not for %q", row["FOR"])
		}
		n := newNetwork(i, row["NETWORK"], role)
		if row["ADDRESSES"] != "" {
			var err error
			if n.addresses, err = strconv.Atoi(row["ADDRESSES"]); err != nil {
				return err
			}
		}
		n.refuses = row["REFUSES"]
		w.networks = append(w.networks, n)
	}
	// Ingot acts upon no revision that holds no manifest, and finds nothing then.
	if _, err := w.repo.Commit(map[string]string{"bmcsecrets/spare.yaml": text(secretOf("spare"))}, "begin"); err != nil {
		return err
	}
	return w.fillLoaders()
}

// fillLoaders makes the folder of boot loaders. Nobody runs them here.
func (w *site) fillLoaders() error {
	if err := os.MkdirAll(w.loaderDir(), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"undionly.kpxe", "ipxe.efi", "snp-arm64.efi"} {
		if err := os.WriteFile(filepath.Join(w.loaderDir(), name), []byte(name), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func signLoaders(ctx context.Context, have string) error {
	for _, name := range []string{"ipxe.efi", "snp-arm64.efi"} {
		if err := os.WriteFile(filepath.Join(siteOf(ctx).loaderDir(), name), netboottest.Program(have == "a"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (w *site) loaderDir() string { return filepath.Join(w.dir, "loaders") }

func (w *site) networkSettings() string {
	if len(w.networks) == 0 {
		return ""
	}
	settings := "tftp: {listen: \"127.0.0.1:0\"}\ndhcp:\n"
	for _, n := range w.networks {
		settings += n.configuration()
	}
	return settings
}

func plugIn(ctx context.Context, d *device) error {
	w := siteOf(ctx)
	if _, err := d.acquire(netip.Addr{}); err != nil {
		return err
	}
	if d.network.role != model.RoleBMC {
		return nil
	}
	w.found[d.name] = d.network.name + "-" + strings.ReplaceAll(d.mac, ":", "")
	if b := w.bmcs[d.name]; b != nil && w.bmcPort != "" {
		return w.connect(d, b)
	}
	return nil
}

func askAgain(_ context.Context, d *device) error {
	_, err := d.acquire(netip.Addr{})
	return err
}

func askForSame(_ context.Context, d *device) error {
	return d.resume()
}

func hasSameAddress(_ context.Context, d *device) error {
	if d.address != d.had {
		return fmt.Errorf("%s had %s and has %s", d.name, d.had, d.address)
	}
	return nil
}

// noAddress checks that a device is offered nothing, and that a request for an address that was offered before is not
// answered.
func noAddress(_ context.Context, d *device) error {
	return rig.Within(patience, func() error {
		for range 3 {
			offer, err := d.ask(dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeOffer, netip.Addr{})
			if errors.Is(err, errSilent) {
				continue
			}
			if err != nil {
				return err
			}
			offered, _ := netip.AddrFromSlice(offer.YourIPAddr.To4())
			_, err = d.ask(dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeAck, offered)
			return fmt.Errorf("%s is offered %s, and its request is answered: %v", d.name, offered, err == nil)
		}
		return nil
	})
}

func moveBMC(ctx context.Context, d *device, answers string) error {
	w := siteOf(ctx)
	if err := d.release(); err != nil {
		return err
	}
	if _, err := d.acquire(d.network.address(firstAddress + d.network.addresses - 1)); err != nil {
		return err
	}
	if d.address == d.had {
		return fmt.Errorf("%s has %s as before", d.name, d.address)
	}
	return w.connect(d, w.bmcs[cmp.Or(answers, d.name)])
}

// commitEndpoint reserves an address in Git. The device is called as it is there
// from then on.
func commitEndpoint(ctx context.Context, d *device) error {
	w := siteOf(ctx)
	o := object(model.KindEndpoint, w.called(d.name), nil)
	spec(o)["macAddress"], spec(o)["ip"] = d.mac, d.network.reserved().String()
	return w.apply(ctx, map[string]string{"endpoints/" + d.name + ".yaml": text(o)}, "reserve an address for "+d.name)
}

// commitPort reserves an address in Git for whatever is plugged into a port.
func commitPort(ctx context.Context, port string) error {
	return siteOf(ctx).commitReservation(ctx, port, model.AnnotationCircuitID)
}

func plugIntoPort(ctx context.Context, d *device, port string) error {
	d.port = port
	return plugIn(ctx, d)
}

func plugIntoLongPort(ctx context.Context, d *device, size int) error {
	return plugIntoPort(ctx, d, strings.Repeat("p", size))
}

func plugIntoNetwork(ctx context.Context, d *device, network string) error {
	if err := siteOf(ctx).move(d, network); err != nil {
		return err
	}
	return plugIn(ctx, d)
}

// move connects a device to another network.
func (w *site) move(d *device, name string) error {
	i := slices.IndexFunc(w.networks, func(n *network) bool { return n.name == name })
	if i < 0 {
		return fmt.Errorf("there is no network %q", name)
	}
	d.network = w.networks[i]
	return nil
}

// commitOnNetwork reserves an address for a device on one of its networks, by an Endpoint of its own.
func commitOnNetwork(ctx context.Context, d *device, network string) error {
	w := siteOf(ctx)
	if err := w.move(d, network); err != nil {
		return err
	}
	name := d.name + "-" + network
	o := object(model.KindEndpoint, name, nil)
	spec(o)["macAddress"], spec(o)["ip"] = d.mac, d.network.reserved().String()
	return w.apply(ctx, map[string]string{"endpoints/" + name + ".yaml": text(o)}, "reserve an address for "+name)
}

// declineAddress declines the address that a device has (RFC 2131 §4.3.3), which has no answer.
func declineAddress(_ context.Context, d *device, message string) error {
	_, err := d.ask(dhcpv4.MessageTypeDecline, dhcpv4.MessageTypeNone, d.address,
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(d.told.ServerIdentifier())), dhcpv4.WithOption(dhcpv4.OptMessage(message)))
	if errors.Is(err, errSilent) {
		return nil
	}
	return err
}

// asksOther requests an address of another DHCP server, which Ingot hears through the relay.
func asksOther(_ context.Context, d *device, firmware string) error {
	options, err := d.boots(firmware)
	if err != nil {
		return err
	}
	options = append(options, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 9))))
	_, err = d.ask(dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeNone, d.network.reserved(), options...)
	if errors.Is(err, errSilent) {
		return nil
	}
	return err
}

func hasReserved(_ context.Context, d *device) error {
	if d.address != d.network.reserved() {
		return fmt.Errorf("%s has %s, not %s", d.name, d.address, d.network.reserved())
	}
	return nil
}

func hasUnreserved(_ context.Context, d *device) error {
	if !d.address.IsValid() || d.address == d.network.reserved() {
		return fmt.Errorf("%s has %s", d.name, d.address)
	}
	return nil
}

func givenReserved(ctx context.Context, d *device) error {
	w := siteOf(ctx)
	err := d.askUntil(func() error {
		if d.address != d.network.reserved() {
			return fmt.Errorf("%s has %s, not %s", d.name, d.address, d.network.reserved())
		}
		return nil
	})
	if b := w.bmcs[d.name]; err == nil && b != nil {
		err = w.connect(d, b)
	}
	return err
}

func (d *device) askUntil(right func() error) error {
	return rig.Within(patience, func() error {
		_, err := d.acquire(netip.Addr{})
		if err == nil {
			err = right()
		}
		if err != nil {
			time.Sleep(200 * time.Millisecond) // Ingot answers a device only so often
		}
		return err
	})
}

func commitSecret(ctx context.Context, name string) error {
	w := siteOf(ctx)
	return w.commit(map[string]string{"bmcsecrets/" + name + ".yaml": text(secretOf(w.called(name)))}, "give the password of "+name)
}

func askBoot(ctx context.Context, d *device, firmware string) error {
	options, err := d.boots(firmware)
	if err != nil {
		return err
	}
	siteOf(ctx).told, err = d.acquire(netip.Addr{}, options...)
	return err
}

// toldFile compares a boot file: its name, and the way to it.
func toldFile(ctx context.Context, file, way string) error {
	w := siteOf(ctx)
	told, by := w.told.BootFileNameOption(), "HTTP"
	if w.told.ServerIdentifier() == nil || w.told.SubnetMask() == nil || w.told.IPAddressLeaseTime(0) == 0 {
		return fmt.Errorf("it is told no server, subnet mask or lease time: %s", w.told.Summary())
	}
	if w.told.TFTPServerName() != "" {
		by = "TFTP"
	}
	path, ours := strings.CutPrefix(told, w.boot.server.URL)
	if by == "HTTP" && !ours {
		return fmt.Errorf("it is told %q, which is not at the boot service", told)
	}
	name := strings.TrimPrefix(path, "/loader/")
	for server, m := range w.machines {
		if d := w.devices[server]; path == "/ipxe/"+m.UUID() && d != nil && d.mac == w.told.ClientHWAddr.String() {
			name = "its own script"
		}
	}
	if name != file || by != way {
		return fmt.Errorf("it is told %q by %s, not %s by %s", told, by, file, way)
	}
	return nil
}

func toldNothing(ctx context.Context) error {
	t := siteOf(ctx).told
	if t.YourIPAddr.IsUnspecified() {
		return errors.New("it has no address")
	}
	if t.BootFileName != "" || t.BootFileNameOption() != "" || t.ServerHostName != "" || t.TFTPServerName() != "" {
		return fmt.Errorf("it is told to boot: %s", t.Summary())
	}
	return nil
}

package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model"
)

// cable leads from a BMC's address to where its simulation listens.
type cable struct {
	listener net.Listener
	bmc      *sim.BMC
	mu       sync.Mutex
	open     map[net.Conn]bool // nil once the cable is pulled
	ended    sync.WaitGroup
}

func newCable(address string, bmc *sim.BMC) (*cable, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &cable{listener: l, bmc: bmc, open: make(map[net.Conn]bool)}
	c.ended.Go(c.run)
	return c, nil
}

func (c *cable) run() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return // it was pulled
		}
		far, err := net.Dial("tcp", c.bmc.Addr())
		if err != nil || !c.hold(near, far) {
			_ = near.Close()
			continue
		}
		c.ended.Go(func() { c.join(near, far) })
		c.ended.Go(func() { c.join(far, near) })
	}
}

// join copies one way, until either side ends.
func (c *cable) join(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// hold notes connections that end when the cable is pulled, unless it was.
func (c *cable) hold(all ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range all {
		if c.open == nil {
			_ = conn.Close()
			continue
		}
		c.open[conn] = true
	}
	return c.open != nil
}

// pull ends the cable and all that goes through it. It may be called again.
func (c *cable) pull() {
	_ = c.listener.Close()
	c.mu.Lock()
	for conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
	c.mu.Unlock()
	c.ended.Wait()
}

// connect lets a BMC be reached where a device has its address.
func (w *world) connect(d *device, bmc *sim.BMC) error {
	if old := w.cables[d]; old != nil {
		old.pull()
	}
	c, err := newCable(net.JoinHostPort(d.address.String(), w.bmcPort), bmc)
	if err != nil {
		return err
	}
	w.cables[d] = c
	w.clients = append(w.clients, c.pull)
	return nil
}

// called is Ingot's name for what the scenario calls by another: what nobody typed
// a name for is named after its MAC address.
func (w *world) called(name string) string {
	if found := w.found[name]; found != "" {
		return found
	}
	if m := w.machines[name]; m != nil && w.found[m.bmc] != "" {
		_, number, _ := strings.Cut(string(m.Name()), "-system-")
		return w.found[m.bmc] + "-system-" + number
	}
	return name
}

// theNetworks are those that Ingot is to serve once it is started.
func theNetworks(ctx context.Context, table *godog.Table) error {
	if err := known(table, "NETWORK", "FOR", "ADDRESSES", "REFUSES"); err != nil {
		return err
	}
	w := worldOf(ctx)
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
	secret := object(model.KindBMCSecret, "spare", nil)
	delete(secret, "spec")
	secret["stringData"] = map[string]any{"username": "admin", "password": bmcPassword}
	if _, err := w.repo.Commit(map[string]string{"bmcsecrets/spare.yaml": text(secret)}, "begin"); err != nil {
		return err
	}
	return w.fillLoaders()
}

// fillLoaders makes the folder of boot loaders. Nobody runs them here.
func (w *world) fillLoaders() error {
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

func (w *world) loaderDir() string { return filepath.Join(w.dir, "loaders") }

func (w *world) databaseFile() string { return filepath.Join(w.dir, "mac-prefixes.yaml") }

// wrongPassword begins all passwords that no BMC takes. They are secrets, too: they
// may open the BMC of somebody else.
const wrongPassword = "open-sesame"

// theDatabase writes the MAC prefix database. All BMCs listen on the same port.
func theDatabase(ctx context.Context, table *godog.Table) error {
	if err := known(table, "PREFIX", "PASSWORDS"); err != nil {
		return err
	}
	w := worldOf(ctx)
	_, w.bmcPort, _ = net.SplitHostPort(freeAddress())
	text := "macPrefixes:\n"
	for _, row := range rows(table) {
		text += fmt.Sprintf("- {macPrefix: %q, manufacturer: Ingot, protocol: Redfish, protocolScheme: https, port: %s, type: bmc, defaultCredentials: [", row["PREFIX"], w.bmcPort)
		for i, p := range names(row["PASSWORDS"]) {
			password, ok := map[string]string{"right": bmcPassword, "wrong": fmt.Sprintf("%s-%s-%d", wrongPassword, row["PREFIX"], i)}[p]
			if !ok {
				return fmt.Errorf("a password is right or wrong, not %q", p)
			}
			text += fmt.Sprintf("{username: admin, password: %q}, ", password)
		}
		text += "]}\n"
	}
	return os.WriteFile(w.databaseFile(), []byte(text), 0o600)
}

// withoutDatabase restarts Ingot with no MAC prefix database.
func withoutDatabase(ctx context.Context) error {
	if err := os.Remove(worldOf(ctx).databaseFile()); err != nil {
		return err
	}
	return restartIngot(ctx)
}

// networkSettings are Ingot's for the networks, if there are any.
func (w *world) networkSettings() string {
	if len(w.networks) == 0 {
		return ""
	}
	settings := "tftp: {listen: \"127.0.0.1:0\"}\ndhcp:\n"
	for _, n := range w.networks {
		settings += n.configuration()
	}
	return settings
}

// plugIn gives a device an address, and a BMC its cable.
func plugIn(ctx context.Context, name string) error {
	w := worldOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	if _, err := d.acquire(netip.Addr{}); err != nil {
		return err
	}
	if d.network.role != model.RoleBMC {
		return nil
	}
	w.found[name] = d.network.name + "-" + strings.ReplaceAll(d.mac, ":", "")
	if b := w.bmcs[name]; b != nil && w.bmcPort != "" {
		return w.connect(d, b)
	}
	return nil
}

// askAgain asks for an address as a client that has none would.
func askAgain(ctx context.Context, name string) error {
	d, err := worldOf(ctx).device(name)
	if err != nil {
		return err
	}
	_, err = d.acquire(netip.Addr{})
	return err
}

func askForSame(ctx context.Context, name string) error {
	d, err := worldOf(ctx).device(name)
	if err != nil {
		return err
	}
	return d.resume()
}

func hasSameAddress(ctx context.Context, name string) error {
	d, err := worldOf(ctx).device(name)
	if err == nil && d.address != d.had {
		err = fmt.Errorf("%s had %s and has %s", name, d.had, d.address)
	}
	return err
}

// noAddress asks a few times.
func noAddress(ctx context.Context, name string) error {
	d, err := worldOf(ctx).device(name)
	if err != nil {
		return err
	}
	for range 3 {
		offer, err := d.ask(dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeOffer, netip.Addr{})
		if errors.Is(err, errSilent) {
			continue
		}
		if err != nil {
			return err
		}
		offered, _ := netip.AddrFromSlice(offer.YourIPAddr.To4())
		if _, err = d.ask(dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeAck, offered); err == nil {
			return fmt.Errorf("%s is given %s", name, offered)
		}
	}
	return nil
}

// moveBMC has a BMC give its address back and ask for another.
func moveBMC(ctx context.Context, name string) error {
	return moveBMCTo(ctx, name, name)
}

// moveBMCTo does so, and has a BMC answer there.
func moveBMCTo(ctx context.Context, name, answers string) error {
	w := worldOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	if err := d.release(); err != nil {
		return err
	}
	if _, err := d.acquire(d.network.address(firstAddress + d.network.addresses - 1)); err != nil {
		return err
	}
	if d.address == d.had {
		return fmt.Errorf("%s has %s as before", name, d.address)
	}
	return w.connect(d, w.bmcs[answers])
}

// commitEndpoint reserves an address in Git. The device is called as it is there
// from then on.
func commitEndpoint(ctx context.Context, name string) error {
	w := worldOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	o := object(model.KindEndpoint, w.called(name), nil)
	spec(o)["macAddress"], spec(o)["ip"] = d.mac, d.network.reserved().String()
	commit, err := w.repo.Commit(map[string]string{"endpoints/" + name + ".yaml": text(o)}, "reserve an address for "+name)
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

// givenReserved asks again and again, as a device does whose lease is short.
func givenReserved(ctx context.Context, name string) error {
	w := worldOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	err = rig.Within(patience, func() error {
		_, err := d.acquire(netip.Addr{})
		if err == nil && d.address != d.network.reserved() {
			time.Sleep(200 * time.Millisecond) // Ingot answers a device only so often
			err = fmt.Errorf("%s has %s, not %s", name, d.address, d.network.reserved())
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.connect(d, w.bmcs[name])
}

func commitSecret(ctx context.Context, name string) error {
	w := worldOf(ctx)
	secret := object(model.KindBMCSecret, w.called(name), nil)
	delete(secret, "spec")
	secret["stringData"] = map[string]any{"username": "admin", "password": bmcPassword}
	_, err := w.repo.Commit(map[string]string{"bmcsecrets/" + name + ".yaml": text(secret)}, "give the password of "+name)
	return err
}

// passwordsRefused compares what Ingot has on record.
func passwordsRefused(ctx context.Context, number, name string) error {
	want := map[string]int{"no": 0, "one": 1}[number]
	if n, err := strconv.Atoi(number); err == nil {
		want = n
	}
	return rig.Within(patience, func() error {
		x, err := explain(ctx, "endpoint", worldOf(ctx).called(name))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(x, "credentials refused: ")
		if got := cmp.Or(strings.SplitN(rest, "\n", 2)[0], "0"); got != strconv.Itoa(want) {
			return fmt.Errorf("%s passwords were refused, not %d:\n%s", got, want, x)
		}
		return nil
	})
}

// explain runs "ingot explain".
func explain(ctx context.Context, kind, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, ingotProgram, "explain", "--address", "http://"+worldOf(ctx).ingot.where.Admin, kind, name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ingot explain: %w\n%s", err, out)
	}
	return string(out), nil
}

func explainSays(ctx context.Context, name, want string) error {
	return rig.Within(patience, func() error {
		x, err := explain(ctx, "server", worldOf(ctx).called(name))
		if err == nil && !strings.Contains(unfolded(x), want) {
			err = fmt.Errorf("ingot explain does not say %q:\n%s", want, x)
		}
		return err
	})
}

// askBoot has a machine's firmware ask what to boot.
func askBoot(ctx context.Context, name, firmware string) error {
	w := worldOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	options, err := d.boots(firmware)
	if err != nil {
		return err
	}
	w.told, err = d.acquire(netip.Addr{}, options...)
	return err
}

// toldFile compares a boot file: its name, and the way to it.
func toldFile(ctx context.Context, file, way string) error {
	w := worldOf(ctx)
	told, by := w.told.BootFileNameOption(), "HTTP"
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
	t := worldOf(ctx).told
	if t.YourIPAddr.IsUnspecified() {
		return errors.New("it has no address")
	}
	if t.BootFileName != "" || t.BootFileNameOption() != "" || t.ServerHostName != "" || t.TFTPServerName() != "" {
		return fmt.Errorf("it is told to boot: %s", t.Summary())
	}
	return nil
}

// askIgnitionFrom asks as metalprobe does that knows no token: it is known by the
// address that it asks from.
func askIgnitionFrom(ctx context.Context, server, asks string) error {
	w := worldOf(ctx)
	m, err := w.machine(server)
	if err != nil {
		return err
	}
	a, err := w.askFrom(ctx, asks, http.MethodGet, "http://"+w.ingot.where.Boot+"/ignition/"+m.UUID(), "", nil)
	w.refused = a.code
	return err
}

// metricsFull looks for a network's pools in the metrics.
func metricsFull(ctx context.Context, name string) error {
	return worldOf(ctx).metricIsSet(ctx, "ingot_dhcp_pool_refused_total", fmt.Sprintf("network=%q", name))
}

// prefixes is where the MAC prefix database is, "" without one.
func (w *world) prefixes() string {
	if _, err := os.Stat(w.databaseFile()); err != nil {
		return ""
	}
	return w.databaseFile()
}

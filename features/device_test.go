package features

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cucumber/godog"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/features/internal/rig"
	"ingot/model"
)

func commitClient(ctx context.Context, id string) error {
	return siteOf(ctx).commitReservation(ctx, id, model.AnnotationClientID)
}

// commitReservation reserves an address for a value that the Endpoint has as an annotation.
func (w *site) commitReservation(ctx context.Context, value, annotation string) error {
	return w.commitAnnotated(ctx, value, map[string]any{annotation: value}, map[string]any{"ip": w.networks[0].reserved().String()})
}

func (w *site) commitAnnotated(ctx context.Context, name string, annotations, says map[string]any) error {
	o := object(model.KindEndpoint, name, nil)
	o["metadata"].(map[string]any)["annotations"], o["spec"] = annotations, says
	w.manifest = text(o)
	return w.apply(ctx, map[string]string{"endpoints/" + name + ".yaml": w.manifest}, "describe "+name)
}

func plugInAs(ctx context.Context, d *device, id string) error {
	d.shows = []byte(id)
	return plugIn(ctx, d)
}

func commitOptions(ctx context.Context, name string, table *godog.Table) error {
	if err := known(table, "OPTION", "VALUE"); err != nil {
		return err
	}
	w := siteOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
	options := make(map[string]any)
	for _, row := range rows(table) {
		options[model.DHCPOptionPrefix+row["OPTION"]] = row["VALUE"]
	}
	return w.commitAnnotated(ctx, name, options, map[string]any{"macAddress": d.mac, "ip": d.network.reserved().String()})
}

// toldOf returns what a device was told by an option that people call by a name, "" for nothing.
func (d *device) toldOf(option string) string {
	if option == "host name" {
		return d.told.HostName()
	}
	return d.told.BootFileNameOption()
}

func toldOption(_ context.Context, d *device, option, want string) error {
	return d.askUntil(func() error {
		if got := d.toldOf(option); got != want {
			return fmt.Errorf("%s is told %s %q, not %q", d.name, option, got, want)
		}
		return nil
	})
}

func toldNoOption(_ context.Context, d *device, option string) error {
	if d.told == nil || d.toldOf(option) != "" {
		return fmt.Errorf("%s is told %v", d.name, d.told)
	}
	return nil
}

func problemAtOption(ctx context.Context, option string) error {
	w := siteOf(ctx)
	key := model.DHCPOptionPrefix + option + ": "
	for i, line := range strings.Split(w.manifest, "\n") {
		if at := strings.Index(line, key); at >= 0 {
			place := fmt.Sprintf("line: %d column: %d object: Endpoint", i+1, at+len(key)+1)
			return errors.Join(w.statusHolds(model.ReportFleet, place), w.statusHolds(model.ReportFleet, "["+strings.TrimSuffix(key, ": ")+"]"))
		}
	}
	return fmt.Errorf("no manifest has option %s:\n%s", option, w.manifest)
}

func leasesList(ctx context.Context, d *device, port string) error {
	w := siteOf(ctx)
	return rig.Within(patience, func() error {
		out, err := runIngot(ctx, w.dir, "leases", "--address", "http://"+w.ingot.where.Admin, "--mac", d.mac)
		if err != nil {
			return err
		}
		for _, want := range []string{d.address.String(), d.mac, "Live", d.network.relay().String(), port} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		return nil
	})
}

func hadAddresses(ctx context.Context, first, second string) error {
	w := siteOf(ctx)
	lines := ""
	for i, name := range []string{first, second} {
		d, err := w.device(name)
		if err != nil {
			return err
		}
		d.before = d.network.address(firstAddress + 30 + i)
		lines += fmt.Sprintf("%s,%s,%s\n", d.mac, d.before, name)
	}
	return os.WriteFile(filepath.Join(w.dir, "leases.csv"), []byte(lines), 0o600)
}

func importEndpoints(ctx context.Context) error {
	w := siteOf(ctx)
	if _, err := runIngot(ctx, w.dir, "import", "endpoints", "leases.csv"); err != nil {
		return err
	}
	files := make(map[string]string)
	for _, name := range []string{"endpoints/switch.yaml", "endpoints/camera.yaml"} {
		content, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			return err
		}
		files[name] = string(content)
	}
	return w.apply(ctx, files, "import leases")
}

func givenAsBefore(_ context.Context, d *device) error {
	return d.askUntil(func() error {
		if d.address != d.before {
			return fmt.Errorf("%s has %s, want %s", d.name, d.address, d.before)
		}
		return nil
	})
}

// askOften sends Discovers, and does not wait for answers.
func askOften(ctx context.Context, d *device, times int) error {
	relay := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IP(d.network.relay().AsSlice())}}
	conn, err := relay.DialContext(ctx, "udp4", d.network.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range times {
		p, err := d.request(dhcpv4.MessageTypeDiscover, netip.Addr{})
		if err != nil {
			return err
		}
		_, err = conn.Write(p.ToBytes())
		for errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil { // with a shared store it listens once it leads
			time.Sleep(10 * time.Millisecond)
			_, err = conn.Write(p.ToBytes())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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

	"github.com/cucumber/godog"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/features/internal/rig"
	"ingot/model"
)

func commitClient(ctx context.Context, id string) error {
	w := siteOf(ctx)
	return w.commitAnnotated(ctx, id, map[string]any{model.AnnotationClientID: id}, map[string]any{"ip": w.networks[0].reserved().String()})
}

func (w *site) commitAnnotated(ctx context.Context, name string, annotations, says map[string]any) error {
	o := object(model.KindEndpoint, name, nil)
	o["metadata"].(map[string]any)["annotations"], o["spec"] = annotations, says
	w.manifest = text(o)
	commit, err := w.repo.Commit(map[string]string{"endpoints/" + name + ".yaml": w.manifest}, "describe "+name)
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func plugInAs(ctx context.Context, name, id string) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
	d.shows = []byte(id)
	return plugIn(ctx, name)
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

func toldOption(ctx context.Context, name, option, want string) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
	return d.askUntil(func() error {
		if got := d.toldOf(option); got != want {
			return fmt.Errorf("%s is told %s %q, not %q", name, option, got, want)
		}
		return nil
	})
}

func toldNoOption(ctx context.Context, name, option string) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
	if d.told == nil || d.toldOf(option) != "" {
		return fmt.Errorf("%s is told %v", name, d.told)
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

func leasesList(ctx context.Context, name, port string) error {
	w := siteOf(ctx)
	d, err := w.device(name)
	if err != nil {
		return err
	}
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
	commit, err := w.repo.Commit(files, "import leases")
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func givenAsBefore(ctx context.Context, name string) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
	return d.askUntil(func() error {
		if d.address != d.before {
			return fmt.Errorf("%s has %s, want %s", name, d.address, d.before)
		}
		return nil
	})
}

// askOften sends Discovers, and does not wait for answers.
func askOften(ctx context.Context, name string, times int) error {
	d, err := siteOf(ctx).device(name)
	if err != nil {
		return err
	}
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
		if _, err := conn.Write(p.ToBytes()); err != nil {
			return err
		}
	}
	return nil
}

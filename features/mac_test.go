package features

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"ingot/model"
)

func reportAs(ctx context.Context, device, server string) error {
	w := siteOf(ctx)
	d, m, err := w.pair(device, server)
	if err != nil {
		return err
	}
	token, err := w.reportTokenOf(server)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"systemUUID": %q, "data": {"networkInterfaces": [{"name": "eth0", "macAddress": %q}], `+
		`"nics": [{"name": "eth0", "mac": %q}]}}`, m.UUID(), d.mac, d.mac)
	url := "http://" + w.ingot.where.Registry + "/r/" + token + "/register"
	_, err = ask(ctx, d.address, http.MethodPost, url, body, http.Header{"Content-Type": {"application/json"}})
	return err
}

func (w *site) pair(device, server string) (*device, *machine, error) {
	d, err := w.device(device)
	if err != nil {
		return nil, nil, err
	}
	m, err := w.machine(server)
	return d, m, err
}

// macIsNoneOf looks for a MAC address, or that of a device, among those that count as a
// server's.
func macIsNoneOf(ctx context.Context, server, mac string) error {
	w := siteOf(ctx)
	if _, err := model.CanonicalMAC(mac); err != nil {
		d, err := w.device(mac)
		if err != nil {
			return err
		}
		mac = d.mac
	}
	files, err := w.statusBranch()
	if err != nil {
		return err
	}
	_, record, found := strings.Cut(files["servers/"+w.called(server)+".yaml"], "\ndecided:")
	if !found || strings.Contains(record, mac) {
		return fmt.Errorf("%s is among the MAC addresses of %s, or those are not known:\n%s", mac, server, record)
	}
	return nil
}

// firmwareAsksDHCP has a machine's firmware ask DHCP before it asks for its boot script.
func firmwareAsksDHCP(ctx context.Context, server string) error {
	return asksAlong(ctx, server, server)
}

func asksAlong(ctx context.Context, device, server string) error {
	w := siteOf(ctx)
	d, m, err := w.pair(device, server)
	if err != nil {
		return err
	}
	d.uuid = m.UUID()
	options, err := d.boots("UEFI x64")
	if err != nil {
		return err
	}
	w.firmware = append(w.firmware, func() { _, _ = d.acquire(netip.Addr{}, options...) })
	all := w.firmware
	w.boot.alter(func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/ipxe/"+m.UUID()) {
			for _, asks := range all {
				asks()
			}
		}
		return body
	})
	return nil
}

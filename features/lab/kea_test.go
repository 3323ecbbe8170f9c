package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

// kea is another DHCP server for the rack, in place of Ingot: what fails with it
// too is the lab's fault.
type kea struct {
	on       *rig.Namespace
	dir      string
	size     int // of each pool; 0 = as rackNetwork
	programs []*rig.Process
}

func newKea(t *testing.T, on *rig.Namespace) *kea {
	t.Helper()
	rig.Need(t, rig.ToolKea4, rig.ToolKea6)
	return &kea{on: on, dir: t.TempDir()}
}

func (k *kea) Start(t testing.TB) {
	t.Helper()
	k.programs = nil
	k.startFamily(t, "4", k.config4())
	k.startFamily(t, "6", k.config6())
}

func (k *kea) startFamily(t testing.TB, family, config string) {
	t.Helper()
	file := filepath.Join(k.dir, "kea"+family+".json")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
	environment := []string{"KEA_LOCKFILE_DIR=" + k.dir, "KEA_PIDFILE_DIR=" + k.dir}
	p := k.on.StartWith(t, "kea-dhcp"+family, environment, "kea-dhcp"+family, "-c", file)
	k.programs = append(k.programs, p)
	rig.Eventually(t, rig.Patience, func() error {
		if !strings.Contains(p.Output.String(), "STARTED") {
			return fmt.Errorf("kea-dhcp%s has not started: %s", family, p.Output.Tail(5))
		}
		return nil
	})
}

func startKea4(t *testing.T, on *rig.Namespace) {
	t.Helper()
	rig.Need(t, rig.ToolKea4)
	k := &kea{on: on, dir: t.TempDir()}
	rig.Eventually(t, rig.Patience, func() error { // Kea does not look at a link again that has no carrier
		out, err := on.Run(t, rig.Patience, "ip", "link", "show", rig.BridgeName)
		if err == nil && !strings.Contains(out, "state UP") {
			err = errors.New(out)
		}
		return err
	})
	k.startFamily(t, "4", k.config4())
}

func (k *kea) Stop(t testing.TB) {
	t.Helper()
	for _, p := range k.programs {
		must.Do(t, p.Stop(rig.Patience))
	}
}

func (k *kea) Kill() {
	for _, p := range k.programs {
		p.Kill()
	}
}

const keaLog = `"loggers": [{"name": "kea-dhcp%s", "output_options": [{"output": "stdout"}], "severity": "INFO"}]`

func (k *kea) last(first string) string {
	if k.size == 1 {
		return first
	}
	return strings.TrimSuffix(first, "100") + "150"
}

func (k *kea) config4() string {
	subnet := func(net, gateway string) string {
		return fmt.Sprintf(`{"subnet": "%[1]s0/24", "pools": [{"pool": "%[1]s100 - %[3]s"}], "option-data": [
			{"name": "routers", "data": "%[2]s"}, {"name": "domain-name-servers", "data": "10.77.1.53, 10.77.1.54"},
			{"name": "ntp-servers", "data": "10.77.1.123"}, {"name": "domain-name", "data": "rack.example.com"}]}`,
			net, gateway, k.last(net+"100"))
	}
	return fmt.Sprintf(`{"Dhcp4": {"interfaces-config": {"interfaces": ["br0"]}, "match-client-id": false, "authoritative": true,
		"lease-database": {"type": "memfile", "name": "%s/leases4"}, "valid-lifetime": 3600, "renew-timer": 1800, "rebind-timer": 2700,
		"expired-leases-processing": {"hold-reclaimed-time": 0},
		"subnet4": [%s, %s], `+keaLog+`}}`, k.dir, subnet("10.77.1.", "10.77.1.1"), subnet("10.77.2.", "10.77.2.1"), "4")
}

func (k *kea) config6() string {
	subnet := func(net, device string) string {
		return fmt.Sprintf(`{"subnet": "%[1]s/64", "pools": [{"pool": "%[1]s100 - %[3]s"}]%[2]s, "option-data": [
			{"name": "dns-servers", "data": "fd77:1::53"}, {"name": "domain-search", "data": "rack.example.com"},
			{"code": 56, "csv-format": false, "data": "00010010fd770001000000000000000000000123"}]}`, net, device, k.last(net+"100"))
	}
	return fmt.Sprintf(`{"Dhcp6": {"server-id": {"type": "EN", "enterprise-id": 32473, "identifier": "0877e0afec", "persist": false}, `+
		`"interfaces-config": {"interfaces": ["br0", "br0/fd77:1::1"]},
		"lease-database": {"type": "memfile", "name": "%s/leases6"}, `+
		`"preferred-lifetime": 3600, "valid-lifetime": 3600, "renew-timer": 1800, "rebind-timer": 2700,
		"subnet6": [%s, %s], `+keaLog+`}}`, k.dir, subnet("fd77:1::", `, "interface": "br0"`), subnet("fd77:2::", ""), "6")
}

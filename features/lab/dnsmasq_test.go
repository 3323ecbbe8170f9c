package lab

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

func startDnsmasq(t *testing.T, on *rig.Namespace, options ...string) *rig.Process {
	t.Helper()
	p := on.Start(t, "dnsmasq", append([]string{"dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
		"--interface=" + rig.BridgeName, "--pid-file=", "--log-facility=-", "--log-dhcp", "--dhcp-authoritative", "--no-ping",
		"--dhcp-leasefile=" + filepath.Join(t.TempDir(), "leases")}, options...)...)
	rig.Eventually(t, rig.Patience, func() error {
		if !strings.Contains(p.Output.String(), "started") {
			return errors.New("dnsmasq has not started")
		}
		return nil
	})
	return p
}

func containsAll(s string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// webFails reports whether err is that nobody answered at all.
func webFails(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

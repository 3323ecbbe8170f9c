package lab

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// startDnsmasq runs the DHCP server of somebody else on the rack's link.
func startDnsmasq(t *testing.T, on *namespace, options ...string) *process {
	t.Helper()
	p := on.start(t, "dnsmasq", append([]string{"dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
		"--interface=" + bridgeName, "--pid-file=", "--log-facility=-", "--log-dhcp", "--dhcp-authoritative", "--no-ping",
		"--dhcp-leasefile=" + filepath.Join(t.TempDir(), "leases")}, options...)...)
	eventually(t, patience, func() error {
		if !strings.Contains(p.output.String(), "started") {
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
func (n *namespace) webFails(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

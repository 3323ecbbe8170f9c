package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

// disguise hides that what is behind a tap is iPXE, until it has fetched a file by
// TFTP. All option ROMs of qemu are iPXE and say so in the user class (RFC 3004),
// so Ingot hands them the script at once; a network card of another make is told
// to fetch iPXE first.
func disguise(t *testing.T, on *rig.Namespace, tap string) {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules")
	must.Do(t, os.WriteFile(rules, fmt.Appendf(nil, disguiseRules, tap, userClassAt), 0o600))
	if out, err := on.Run(t, rig.Patience, "nft", "-f", rules); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
}

// userClassAt is where iPXE has its user class: bits from the UDP header's start.
// It follows the fixed part (RFC 2131 §2) and options 53, 57, 93, 94 and 60.
const userClassAt = 8 * (8 + 236 + 4 + 3 + 4 + 4 + 5 + 34 + 2)

// disguiseRules write "none" over "iPXE". A UDP checksum of 0 is none (RFC 768).
const disguiseRules = `table netdev disguise {
	set fetched { type ether_addr; flags dynamic; timeout 1h; }
	chain firmware {
		type filter hook ingress device "%[1]s" priority 0;
		udp dport 69 update @fetched { ether saddr }
		udp dport 67 ether saddr != @fetched @th,%[2]d,32 0x69505845 @th,%[2]d,32 set 0x6e6f6e65 udp checksum set 0
	}
}
`

package inventory

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestLinkModes(t *testing.T) {
	bitmap := make([]byte, 12)
	for _, bit := range []int{
		unix.ETHTOOL_LINK_MODE_Autoneg_BIT, unix.ETHTOOL_LINK_MODE_FIBRE_BIT, unix.ETHTOOL_LINK_MODE_Backplane_BIT,
		unix.ETHTOOL_LINK_MODE_FEC_RS_BIT, unix.ETHTOOL_LINK_MODE_25000baseCR_Full_BIT,
		unix.ETHTOOL_LINK_MODE_50000baseKR_Full_BIT, unix.ETHTOOL_LINK_MODE_100000baseLR_ER_FR_Full_BIT,
	} {
		word := binary.NativeEndian.Uint32(bitmap[bit/32*4:])
		binary.NativeEndian.PutUint32(bitmap[bit/32*4:], word|1<<(bit%32))
	}
	modes, ports := linkModes(bitmap)
	if diff := cmp.Diff([]string{"25000baseCR/Full", "50000baseKR/Full", "100000baseLR_ER_FR/Full"}, modes); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"FIBRE", "Backplane"}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

func TestLinkModeNamesStandAtTheirBits(t *testing.T) {
	names := strings.Fields(linkModeNames)
	for name, bit := range map[string]int{
		"10baseT/Half":               unix.ETHTOOL_LINK_MODE_10baseT_Half_BIT,
		"1000baseKX/Full":            unix.ETHTOOL_LINK_MODE_1000baseKX_Full_BIT,
		"100000baseLR4_ER4/Full":     unix.ETHTOOL_LINK_MODE_100000baseLR4_ER4_Full_BIT,
		"5000baseT/Full":             unix.ETHTOOL_LINK_MODE_5000baseT_Full_BIT,
		"400000baseCR8/Full":         unix.ETHTOOL_LINK_MODE_400000baseCR8_Full_BIT,
		"100baseFX/Full":             unix.ETHTOOL_LINK_MODE_100baseFX_Full_BIT,
		"400000baseLR4_ER4_FR4/Full": unix.ETHTOOL_LINK_MODE_400000baseLR4_ER4_FR4_Full_BIT,
	} {
		if bit >= len(names) || names[bit] != name {
			t.Errorf("bit %d is not %s", bit, name)
		}
	}
}

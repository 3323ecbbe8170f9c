package inventory

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtool asks a network port's driver for its firmware version and link modes. They are
// empty if the driver does not answer.
func ethtool(name string) Link {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Link{}
	}
	defer unix.Close(s)
	var link Link
	if info, err := unix.IoctlGetEthtoolDrvinfo(s, name); err == nil {
		version, _, _ := bytes.Cut(info.Fw_version[:], []byte{0})
		link.Firmware = clean(string(version))
	}
	link.Modes, link.Ports = linkModes(supported(s, name))
	return link
}

// supported returns the bit map of supported link modes (linux/ethtool.h, struct
// ethtool_link_settings). The first request only learns how long the map is: the
// kernel answers with the number of words, negated.
func supported(socket int, name string) []byte {
	const (
		header    = 48 // bytes before the maps
		words     = 15 // offset of the number of words of each of the three maps
		mostWords = 127
	)
	request := make([]byte, header+3*4*mostWords)
	for range 2 {
		binary.NativeEndian.PutUint32(request, unix.ETHTOOL_GLINKSETTINGS)
		if ioctlEthtool(socket, name, request) != nil {
			return nil
		}
		n := int8(request[words])
		if n > 0 {
			return request[header : header+4*int(n)]
		}
		request[words] = byte(-n)
	}
	return nil
}

// ioctlEthtool does SIOCETHTOOL with a struct ifreq that points to request.
func ioctlEthtool(socket int, name string, request []byte) error {
	var ifreq struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel copies the longest member of the union
	}
	copy(ifreq.name[:unix.IFNAMSIZ-1], name)
	ifreq.data = unsafe.Pointer(&request[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq)))
	runtime.KeepAlive(request)
	if errno != 0 {
		return errno
	}
	return nil
}

// linkModes names the bits of a map of link modes: speeds, and kinds of port.
// Bits for negotiation, pause and error correction are left out.
func linkModes(bitmap []byte) (modes, ports []string) {
	words := make([]uint32, 0, len(bitmap)/4)
	for w := range len(bitmap) / 4 {
		words = append(words, binary.NativeEndian.Uint32(bitmap[4*w:]))
	}
	for bit, name := range strings.Fields(linkModeNames) {
		if bit/32 >= len(words) || words[bit/32]&(1<<(bit%32)) == 0 {
			continue
		}
		switch {
		case strings.Contains(name, "base"):
			modes = append(modes, name)
		case name != "-":
			ports = append(ports, name)
		}
	}
	return modes, ports
}

// linkModeNames are the bits of enum ethtool_link_mode_bit_indices in order
// (linux/ethtool.h); "-" is a bit that is neither a speed nor a kind of port.
const linkModeNames = `
	10baseT/Half 10baseT/Full 100baseT/Half 100baseT/Full 1000baseT/Half 1000baseT/Full
	- TP AUI MII FIBRE BNC 10000baseT/Full - - 2500baseX/Full Backplane
	1000baseKX/Full 10000baseKX4/Full 10000baseKR/Full - 20000baseMLD2/Full 20000baseKR2/Full
	40000baseKR4/Full 40000baseCR4/Full 40000baseSR4/Full 40000baseLR4/Full
	56000baseKR4/Full 56000baseCR4/Full 56000baseSR4/Full 56000baseLR4/Full
	25000baseCR/Full 25000baseKR/Full 25000baseSR/Full 50000baseCR2/Full 50000baseKR2/Full
	100000baseKR4/Full 100000baseSR4/Full 100000baseCR4/Full 100000baseLR4_ER4/Full 50000baseSR2/Full
	1000baseX/Full 10000baseCR/Full 10000baseSR/Full 10000baseLR/Full 10000baseLRM/Full 10000baseER/Full
	2500baseT/Full 5000baseT/Full - - -
	50000baseKR/Full 50000baseSR/Full 50000baseCR/Full 50000baseLR_ER_FR/Full 50000baseDR/Full
	100000baseKR2/Full 100000baseSR2/Full 100000baseCR2/Full 100000baseLR2_ER2_FR2/Full 100000baseDR2/Full
	200000baseKR4/Full 200000baseSR4/Full 200000baseLR4_ER4_FR4/Full 200000baseDR4/Full 200000baseCR4/Full
	100baseT1/Full 1000baseT1/Full
	400000baseKR8/Full 400000baseSR8/Full 400000baseLR8_ER8_FR8/Full 400000baseDR8/Full 400000baseCR8/Full
	-
	100000baseKR/Full 100000baseSR/Full 100000baseLR_ER_FR/Full 100000baseCR/Full 100000baseDR/Full
	200000baseKR2/Full 200000baseSR2/Full 200000baseLR2_ER2_FR2/Full 200000baseDR2/Full 200000baseCR2/Full
	400000baseKR4/Full 400000baseSR4/Full 400000baseLR4_ER4_FR4/Full 400000baseDR4/Full 400000baseCR4/Full
	100baseFX/Half 100baseFX/Full`

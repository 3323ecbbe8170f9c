package lease

import (
	"encoding/hex"

	"ingot/model"
)

// MAC is a 48-bit MAC address.
type MAC [6]byte

// ParseMAC reads a MAC address in any spelling that model.CanonicalMAC takes.
func ParseMAC(s string) (mac MAC, ok bool) {
	if readColons(&mac, s) {
		return mac, true
	}
	if len(s) > len("00:00:00:00:00:00") { // a UUID, more often than not
		return mac, false
	}
	canonical, err := model.CanonicalMAC(s)
	return mac, err == nil && readColons(&mac, canonical)
}

// readColons reads the canonical spelling, which almost all have.
func readColons(mac *MAC, s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range mac {
		if i > 0 && s[3*i-1] != ':' {
			return false
		}
		if _, err := hex.Decode(mac[i:i+1], []byte(s[3*i:3*i+2])); err != nil {
			return false
		}
	}
	return true
}

// String returns the canonical spelling.
func (m MAC) String() string {
	const digits = "0123456789abcdef"
	var out [17]byte
	for i, b := range m {
		if i > 0 {
			out[3*i-1] = ':'
		}
		out[3*i], out[3*i+1] = digits[b>>4], digits[b&15]
	}
	return string(out[:])
}

// IsStation reports whether m can be one machine's: it is neither a group's, nor
// everybody's, nor nobody's (IEEE 802 §8.2).
func (m MAC) IsStation() bool { return m != MAC{} && m[0]&1 == 0 }

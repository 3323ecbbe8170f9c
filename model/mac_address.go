package model

import (
	"encoding/hex"
	"errors"
	"strings"
)

// MAC is a 48-bit MAC address.
type MAC [6]byte

// ParseMAC reads the spellings 00:1A:2B:3C:4D:5E, 00-1A-2B-3C-4D-5E, 001A.2B3C.4D5E
// and 001A2B3C4D5E.
func ParseMAC(s string) (m MAC, ok bool) {
	if len(s) == 17 { // nearly all are spelt so, and DHCP asks for each packet
		return pairedMAC(s)
	}
	digits, ok := bareMAC(s)
	if !ok {
		return m, false
	}
	_, err := hex.Decode(m[:], digits[:])
	return m, err == nil
}

// pairedMAC reads 17 bytes: pairs of digits with a colon or a dash between them.
func pairedMAC(s string) (m MAC, ok bool) {
	separator := s[2]
	if separator != ':' && separator != '-' {
		return MAC{}, false
	}
	for i := range m {
		high, low := hexDigit(s[3*i]), hexDigit(s[3*i+1])
		if high|low > 0xf || i < 5 && s[3*i+2] != separator {
			return MAC{}, false
		}
		m[i] = high<<4 | low
	}
	return m, true
}

// hexDigit is the value of a hexadecimal digit, more than 15 if it is none.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// String returns the canonical spelling: in lower case, with colons.
func (m MAC) String() string {
	const digits = "0123456789abcdef"
	var out [17]byte
	for i, b := range m {
		if i > 0 {
			out[3*i-1] = ':'
		}
		out[3*i], out[3*i+1] = digits[b>>4], digits[b&0xf]
	}
	return string(out[:])
}

// IsStation reports whether m can be one device's: it is not blank, and stands for no
// group of devices (IEEE 802, the lowest bit of the first octet).
func (m MAC) IsStation() bool { return m != MAC{} && m[0]&1 == 0 }

// CanonicalMAC returns the canonical spelling of what ParseMAC reads.
func CanonicalMAC(s string) (string, error) {
	m, ok := ParseMAC(s)
	if !ok {
		return "", errors.New(notMAC(s))
	}
	return m.String(), nil
}

func notMAC(s string) string { return "found " + show(s) + ", want " + wantMAC }

const wantMAC = "a MAC address such as 00:1a:2b:3c:4d:5e"

// StationMAC returns the canonical spelling of a MAC address that can be one device's.
func StationMAC(text string) (mac string, ok bool) {
	m, ok := ParseMAC(strings.TrimSpace(text))
	if !ok || !m.IsStation() {
		return "", false
	}
	return m.String(), true
}

// bareMAC returns the twelve digits of a MAC address. Only evenly spaced
// separators of one kind are taken, so that a digit too few is not made up for
// by the next group.
func bareMAC(s string) (digits [12]byte, ok bool) {
	var separator byte
	group := 0
	switch {
	case len(s) == 12:
		group = 12
	case len(s) == 17 && (s[2] == ':' || s[2] == '-'):
		separator, group = s[2], 2
	case len(s) == 14 && s[4] == '.':
		separator, group = '.', 4
	default:
		return digits, false
	}
	n := 0
	for i := range len(s) {
		switch {
		case group < 12 && i%(group+1) == group:
			if s[i] != separator {
				return digits, false
			}
		case !isHex(s[i]):
			return digits, false
		default:
			digits[n] = s[i]
			n++
		}
	}
	return digits, true
}

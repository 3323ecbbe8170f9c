package model

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// CanonicalMAC returns a 48-bit MAC address in lower case with colons. It takes
// the spellings 00:1A:2B:3C:4D:5E, 00-1A-2B-3C-4D-5E, 001A.2B3C.4D5E and
// 001A2B3C4D5E.
func CanonicalMAC(s string) (string, error) {
	digits, ok := bareMAC(s)
	if !ok {
		return "", fmt.Errorf("found %s, want a MAC address such as 00:1a:2b:3c:4d:5e", show(s))
	}
	out := make([]byte, 0, 17)
	for i := 0; i < len(digits); i += 2 {
		if i > 0 {
			out = append(out, ':')
		}
		out = append(out, lower(digits[i]), lower(digits[i+1]))
	}
	return string(out), nil
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

// CanonicalUUID returns a UUID in lower case with dashes. It also takes one
// without dashes, and one in braces.
func CanonicalUUID(s string) (string, error) {
	b, ok := parseUUID(s)
	if !ok {
		return "", fmt.Errorf("found %s, want a UUID such as 123e4567-e89b-12d3-a456-426614174000", show(s))
	}
	return formatUUID(b), nil
}

// UsableUUID reports whether s is a UUID that tells machines apart: firmware
// whose vendor set none answers with all zeros or all ones.
func UsableUUID(s string) bool {
	b, ok := parseUUID(s)
	return ok && b != uuidZeros && b != uuidOnes
}

var (
	uuidZeros [16]byte
	uuidOnes  = [16]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	}
)

// UUIDVariants returns the canonical spellings under which a machine may show
// its UUID: as it stands, and with the bytes of the first three groups swapped,
// for SMBIOS stores these little-endian (DSP0134 §7.2.1) and not every firmware
// heeds it. It is empty when s is no UUID.
func UUIDVariants(s string) []string {
	b, ok := parseUUID(s)
	if !ok {
		return nil
	}
	swapped := b
	swapped[0], swapped[1], swapped[2], swapped[3] = b[3], b[2], b[1], b[0]
	swapped[4], swapped[5] = b[5], b[4]
	swapped[6], swapped[7] = b[7], b[6]
	if swapped == b {
		return []string{formatUUID(b)}
	}
	return []string{formatUUID(b), formatUUID(swapped)}
}

// SameUUID reports whether a and b are one machine's UUID, whatever the spelling
// and byte order. A UUID that is not usable is the same as no other.
func SameUUID(a, b string) bool {
	if !UsableUUID(a) || !UsableUUID(b) {
		return false
	}
	want, _ := CanonicalUUID(b)
	return slices.Contains(UUIDVariants(a), want)
}

func parseUUID(s string) (b [16]byte, ok bool) {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	var digits [32]byte
	switch len(s) {
	case 32:
		copy(digits[:], s)
	case 36:
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return b, false
		}
		copy(digits[0:], s[0:8])
		copy(digits[8:], s[9:13])
		copy(digits[12:], s[14:18])
		copy(digits[16:], s[19:23])
		copy(digits[20:], s[24:36])
	default:
		return b, false
	}
	_, err := hex.Decode(b[:], digits[:])
	return b, err == nil
}

func formatUUID(b [16]byte) string {
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// ParseIdentity is the inverse of Identity.String. It reads Problem.Object,
// which for a document of a foreign kind may be the kind alone.
func ParseIdentity(s string) (Identity, bool) {
	kind, name, _ := strings.Cut(s, " ")
	if kind == "" {
		return Identity{}, false
	}
	id := Identity{Kind: Kind(kind), Name: name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		id.Namespace, id.Name = namespace, rest
	}
	return id, true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

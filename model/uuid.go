package model

import (
	"encoding/hex"
	"fmt"
	"slices"
)

// UUID is a UUID in the order of its text.
type UUID [16]byte

// ParseUUID reads a UUID of any case, with dashes or without, or in braces.
func ParseUUID(s string) (u UUID, ok bool) {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	var digits [32]byte
	switch len(s) {
	case 32:
		copy(digits[:], s)
	case 36:
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return u, false
		}
		copy(digits[0:], s[0:8])
		copy(digits[8:], s[9:13])
		copy(digits[12:], s[14:18])
		copy(digits[16:], s[19:23])
		copy(digits[20:], s[24:36])
	default:
		return u, false
	}
	_, err := hex.Decode(u[:], digits[:])
	return u, err == nil
}

// String returns the canonical spelling: in lower case, with dashes.
func (u UUID) String() string {
	var out [36]byte
	hex.Encode(out[0:8], u[0:4])
	hex.Encode(out[9:13], u[4:6])
	hex.Encode(out[14:18], u[6:8])
	hex.Encode(out[19:23], u[8:10])
	hex.Encode(out[24:36], u[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// IsUsable reports whether u tells machines apart: firmware whose vendor set none
// answers with all zeros or all ones.
func (u UUID) IsUsable() bool { return u != uuidZeros && u != uuidOnes }

var (
	uuidZeros UUID
	uuidOnes  = UUID{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	}
)

// Variants returns what a machine may show as its UUID: it as it stands, and with the
// bytes of the first three groups swapped, for SMBIOS stores these little-endian
// (DSP0134 §7.2.1) and not every firmware heeds it.
func (u UUID) Variants() []UUID {
	swapped := u
	swapped[0], swapped[1], swapped[2], swapped[3] = u[3], u[2], u[1], u[0]
	swapped[4], swapped[5] = u[5], u[4]
	swapped[6], swapped[7] = u[7], u[6]
	if swapped == u {
		return []UUID{u}
	}
	return []UUID{u, swapped}
}

// CanonicalUUID returns the canonical spelling of what ParseUUID reads.
func CanonicalUUID(s string) (string, error) {
	if isCanonicalUUID(s) { // nearly all are, and machines that boot ask by theirs
		return s, nil
	}
	u, ok := ParseUUID(s)
	if !ok {
		return "", fmt.Errorf("found %s, want a UUID such as 123e4567-e89b-12d3-a456-426614174000", show(s))
	}
	return u.String(), nil
}

func isCanonicalUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// UsableUUID reports whether s is a UUID that tells machines apart.
func UsableUUID(s string) bool {
	u, ok := ParseUUID(s)
	return ok && u.IsUsable()
}

// UUIDVariants returns the canonical spellings of the variants of s, none when it is no UUID.
func UUIDVariants(s string) []string {
	u, ok := ParseUUID(s)
	if !ok {
		return nil
	}
	var spellings []string
	for _, v := range u.Variants() {
		spellings = append(spellings, v.String())
	}
	return spellings
}

// SameUUID reports whether a and b are one machine's UUID, whatever the spelling
// and byte order. A UUID that is not usable is the same as no other.
func SameUUID(a, b string) bool {
	u, ok := ParseUUID(a)
	want, known := ParseUUID(b)
	return ok && known && u.IsUsable() && want.IsUsable() && slices.Contains(u.Variants(), want)
}

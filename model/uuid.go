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

// Variants returns the canonical spellings under which a machine may show its UUID: as
// it stands, and with the bytes of the first three groups swapped, for SMBIOS stores
// these little-endian (DSP0134 §7.2.1) and not every firmware heeds it.
func (u UUID) Variants() []string {
	swapped := u
	swapped[0], swapped[1], swapped[2], swapped[3] = u[3], u[2], u[1], u[0]
	swapped[4], swapped[5] = u[5], u[4]
	swapped[6], swapped[7] = u[7], u[6]
	if swapped == u {
		return []string{u.String()}
	}
	return []string{u.String(), swapped.String()}
}

// CanonicalUUID returns the canonical spelling of what ParseUUID reads.
func CanonicalUUID(s string) (string, error) {
	u, ok := ParseUUID(s)
	if !ok {
		return "", fmt.Errorf("found %s, want a UUID such as 123e4567-e89b-12d3-a456-426614174000", show(s))
	}
	return u.String(), nil
}

// UsableUUID reports whether s is a UUID that tells machines apart.
func UsableUUID(s string) bool {
	u, ok := ParseUUID(s)
	return ok && u.IsUsable()
}

// UUIDVariants returns the variants of s, none when it is no UUID.
func UUIDVariants(s string) []string {
	u, ok := ParseUUID(s)
	if !ok {
		return nil
	}
	return u.Variants()
}

// SameUUID reports whether a and b are one machine's UUID, whatever the spelling
// and byte order. A UUID that is not usable is the same as no other.
func SameUUID(a, b string) bool {
	u, ok := ParseUUID(a)
	want, known := ParseUUID(b)
	return ok && known && u.IsUsable() && want.IsUsable() && slices.Contains(u.Variants(), want.String())
}

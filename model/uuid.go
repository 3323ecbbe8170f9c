package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// UUID is a UUID in the order of its text.
type UUID uuid.UUID

// ParseUUID reads a UUID of any case, with dashes or without, in braces or as a URN (RFC 9562 §4).
func ParseUUID(s string) (UUID, bool) {
	if urn := "urn:uuid:"; len(s) > len(urn) && strings.EqualFold(s[:len(urn)], urn) {
		s = s[len(urn):]
	}
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) != 32 && len(s) != 36 {
		return UUID{}, false
	}
	u, err := uuid.Parse(s)
	return UUID(u), err == nil
}

// String returns the canonical spelling: in lower case, with dashes.
func (u UUID) String() string { return uuid.UUID(u).String() }

// defaultUUIDs are those of firmware whose vendor set none.
var defaultUUIDs = []UUID{
	UUID(uuid.Nil), UUID(uuid.Max),
	UUID(uuid.MustParse("03000200-0400-0500-0006-000700080009")), // AMI
	UUID(uuid.MustParse("00020003-0004-0005-0006-000700080009")), // the same, with the bytes of the first groups swapped
	UUID(uuid.MustParse("12345678-1234-5678-90ab-cddeefaabbcc")),
	UUID(uuid.MustParse("11111111-2222-3333-4444-555555555555")),
}

// IsUsable reports whether u identifies one machine.
func (u UUID) IsUsable() bool { return !slices.Contains(defaultUUIDs, u) }

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

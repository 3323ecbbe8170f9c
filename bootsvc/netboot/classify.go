package netboot

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"ingot/model"
)

// Raw is what a DHCP packet of either version says of the machine that asks to boot, as plain
// values. All of it may be hostile.
type Raw struct {
	V6  bool
	MAC string // canonical
	// VendorClasses are option 60, as one text, or the data of option 16 (RFC 8415
	// §21.16).
	VendorClasses []string
	// UserClasses are option 77 as it stands, as one value, or the data of option 15
	// (RFC 8415 §21.15).
	UserClasses [][]byte
	Archs       []Arch // options 93, 61
	// NIC is option 94 (RFC 4578 §2.2) or 62 (RFC 5970 §3.4), nil when it is missing.
	NIC []byte
	// UUID is option 97 as it stands (RFC 4578 §2.3), nil when it is missing.
	UUID []byte
	// DUID is the client identifier of DHCPv6, or of RFC 4361; only a DUID-UUID (RFC
	// 6355) says something.
	DUID []byte
}

// Texts that clients show.
const (
	pxeClient  = "PXEClient"
	httpClient = "HTTPClient"
	archField  = ":Arch:"

	// minVendorClass is the length of PXEClient:Arch:00000. What is shorter is no
	// firmware's.
	minVendorClass = len(pxeClient) + len(archField) + 5

	nicLength  = 3  // type, major, minor
	uuidLength = 17 // type 0, then 16 bytes
)

// ipxeClasses are the user classes of iPXE: its own, and the one of the iPXE that
// Tinkerbell builds.
var ipxeClasses = []string{"iPXE", "Tinkerbell"}

// Classify says who asks to boot. A client whose options are malformed is no
// netboot client: it may have an address, but firmware it is not.
func Classify(raw Raw) Client {
	c := Client{V6: raw.V6, MAC: raw.MAC, UUIDs: uuids(raw)}
	text := firmwareClass(raw.VendorClasses)
	c.Arch = archOf(raw.Archs, text)
	switch {
	case raw.NIC != nil && len(raw.NIC) != nicLength, raw.UUID != nil && !validUUIDOption(raw.UUID):
	case hasUserClass(raw.UserClasses, ProbeUserClass):
		c.Kind = KindProbe
	case slices.ContainsFunc(ipxeClasses, func(class string) bool { return hasUserClass(raw.UserClasses, class) }):
		c.Kind = KindIPXE
	case strings.HasPrefix(text, httpClient):
		c.Kind = KindHTTP
	case strings.HasPrefix(text, pxeClient):
		c.Kind = KindPXE
	}
	return c
}

// firmwareClass returns the first vendor class that firmware wrote, or "".
func firmwareClass(classes []string) string {
	for _, text := range classes {
		named := strings.HasPrefix(text, pxeClient+archField) || strings.HasPrefix(text, httpClient+archField)
		if named && len(text) >= minVendorClass {
			return text
		}
	}
	return ""
}

// archOf returns the first architecture that is known, else that of the vendor
// class PXEClient:Arch:00007:UNDI:003016, else the first that was listed.
func archOf(listed []Arch, vendorClass string) Arch {
	for _, a := range listed {
		if a.Known() {
			return a
		}
	}
	if _, rest, ok := strings.Cut(vendorClass, archField); ok {
		digits, _, _ := strings.Cut(rest, ":")
		if n, err := strconv.ParseUint(digits, 10, 16); err == nil && (Arch(n).Known() || len(listed) == 0) {
			return Arch(n)
		}
	}
	if len(listed) > 0 {
		return listed[0]
	}
	return ArchUnknown
}

// hasUserClass reports whether class is among values. iPXE sends the bare text,
// and others a list with a length before each (RFC 3004 §4), even within a value of
// their own.
func hasUserClass(values [][]byte, class string) bool {
	for _, v := range values {
		if bare := strings.TrimRight(string(v), "\x00"); bare == class {
			return true
		}
		for len(v) > 0 {
			n := int(v[0])
			if n == 0 || n >= len(v) {
				break
			}
			if string(v[1:1+n]) == class {
				return true
			}
			v = v[1+n:]
		}
	}
	return false
}

// uuids returns what the client's UUID may be in canonical form, in either byte
// order. One that does not tell machines apart is left out.
func uuids(raw Raw) []string {
	var found []string
	add := func(u model.UUID) {
		if !u.IsUsable() {
			return
		}
		for _, variant := range u.Variants() {
			if id := variant.String(); !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	if validUUIDOption(raw.UUID) {
		add(model.UUID(raw.UUID[1:]))
	}
	if b, ok := duidUUID(raw.DUID); ok {
		add(b)
	}
	return found
}

// validUUIDOption reports whether b is option 97 with a UUID. Firmware that knows
// none sends all zeros.
func validUUIDOption(b []byte) bool { return len(b) == uuidLength && b[0] == 0 }

// duidUUID returns the UUID of a DUID-UUID (RFC 6355 §4).
func duidUUID(duid []byte) (model.UUID, bool) {
	const typeUUID = 4
	if len(duid) != 18 || binary.BigEndian.Uint16(duid) != typeUUID {
		return model.UUID{}, false
	}
	return model.UUID(duid[2:]), true
}

package registry

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"
	"unique"

	"ingot/model"
)

// A lease is stored in few bytes, for there are many and they change often:
//
//	name:  network, 0, '4' or '6', address (4 or 16 bytes), bits (1 byte)
//	value: version 1, flags, role, MAC address (6 bytes, if flagged), IAID (4 bytes),
//	       Since, Renewed and Expires (8 bytes each), client identifier (the rest)
//
// Numbers are big-endian, so the names of neighbours in a pool are neighbours in a
// tree, and are written together.
const (
	leaseVersion = 1
	// maxLeaseSize is how many bytes name and value may have together.
	maxLeaseSize = 4 << 10

	leaseDeclined = 1 << 0
	leaseHasMAC   = 1 << 1
	leaseUnproven = 1 << 2

	leaseRoleBMC  = 'b'
	leaseRoleHost = 'h'

	familyIPv4 = '4'
	familyIPv6 = '6'
)

// noTime stands for the zero time, which is too early for a count of nanoseconds.
const noTime = math.MinInt64

// leaseName returns the name that a lease is stored under.
func leaseName(l *model.Lease) (string, error) {
	switch {
	case l.Network == "" || strings.Contains(l.Network, "\x00"):
		return "", fmt.Errorf("lease of %s: %.64q is no name of a network", l.Address, l.Network)
	case !l.Address.IsValid() || l.Address.Zone() != "":
		return "", fmt.Errorf("lease on network %s: %s is no address to lease", l.Network, l.Address)
	case l.Bits < 0 || l.Bits > l.Address.BitLen():
		return "", fmt.Errorf("lease of %s on network %s: a prefix of %d bits, allowed are 0 to %d", l.Address, l.Network, l.Bits, l.Address.BitLen())
	}
	name := make([]byte, 0, len(l.Network)+19)
	name = append(append(name, l.Network...), 0)
	if l.Address.Is4() {
		raw := l.Address.As4()
		name = append(append(name, familyIPv4), raw[:]...)
	} else {
		raw := l.Address.As16()
		name = append(append(name, familyIPv6), raw[:]...)
	}
	return string(append(name, byte(l.Bits))), nil
}

// encodeLease returns what a lease is stored as.
func encodeLease(l *model.Lease) ([]byte, error) {
	role, err := roleByte(l.Role)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 0, 37+len(l.ClientID))
	raw = append(raw, leaseVersion, 0, role)
	if l.Declined {
		raw[1] |= leaseDeclined
	}
	if l.Unproven {
		raw[1] |= leaseUnproven
	}
	if l.MAC != "" {
		mac, ok := parseMAC(l.MAC)
		if !ok || mac.String() != l.MAC {
			return nil, fmt.Errorf("%.64q is no canonical MAC address", l.MAC)
		}
		raw[1] |= leaseHasMAC
		raw = append(raw, mac[:]...)
	}
	raw = binary.BigEndian.AppendUint32(raw, l.IAID)
	for _, t := range []time.Time{l.Since, l.Renewed, l.Expires} {
		n, err := nanoseconds(t)
		if err != nil {
			return nil, err
		}
		raw = binary.BigEndian.AppendUint64(raw, uint64(n))
	}
	return append(raw, l.ClientID...), nil
}

func roleByte(role model.NetworkRole) (byte, error) {
	switch role {
	case model.RoleBMC:
		return leaseRoleBMC, nil
	case model.RoleHost:
		return leaseRoleHost, nil
	}
	return 0, fmt.Errorf("%.64q is no role of a network", role)
}

// nanoseconds returns t since 1970. It has room for the years 1678 to 2261.
func nanoseconds(t time.Time) (int64, error) {
	if t.IsZero() {
		return noTime, nil
	}
	n := t.UnixNano()
	if !time.Unix(0, n).Equal(t) {
		return 0, errors.New("a time that is centuries away")
	}
	return n, nil
}

// decodeLease is the inverse of leaseName and encodeLease. What it returns shares
// no memory with what it is given.
func decodeLease(name, value []byte) (model.Lease, error) {
	var l model.Lease
	in := leaseReader{name: name, rest: value, ok: true}
	in.readName(&l)
	in.readValue(&l)
	if !in.ok {
		return model.Lease{}, errNoLease
	}
	return l, nil
}

// leaseReader takes the bytes of a lease apart. When some are missing or mean
// nothing, ok is false and nothing else is of use.
type leaseReader struct {
	name, rest []byte
	ok         bool
}

func (in *leaseReader) need(ok bool) bool {
	in.ok = in.ok && ok
	return in.ok
}

// take returns the next n bytes of the value, zeros where it has no more.
func (in *leaseReader) take(n int) []byte {
	if !in.need(len(in.rest) >= n) {
		return make([]byte, n)
	}
	taken := in.rest[:n]
	in.rest = in.rest[n:]
	return taken
}

func (in *leaseReader) readName(l *model.Lease) {
	network, key, found := strings.Cut(string(in.name), "\x00")
	if !in.need(found && network != "" && len(in.name) <= maxLeaseSize && len(key) > 2) {
		return
	}
	address, isAddress := netip.AddrFromSlice([]byte(key[1 : len(key)-1]))
	if !in.need(isAddress && (key[0] == familyIPv4 && address.Is4() || key[0] == familyIPv6 && address.Is6())) {
		return
	}
	l.Network = unique.Make(network).Value() // there are few
	l.Address, l.Bits = address, int(key[len(key)-1])
	in.need(l.Bits <= address.BitLen())
}

func (in *leaseReader) readValue(l *model.Lease) {
	head := in.take(3)
	flags := head[1]
	if !in.need(head[0] == leaseVersion && flags&^(leaseDeclined|leaseHasMAC|leaseUnproven) == 0) {
		return
	}
	l.Declined, l.Unproven = flags&leaseDeclined != 0, flags&leaseUnproven != 0
	switch head[2] {
	case leaseRoleBMC:
		l.Role = model.RoleBMC
	case leaseRoleHost:
		l.Role = model.RoleHost
	default:
		in.ok = false
	}
	if flags&leaseHasMAC != 0 {
		l.MAC = macAddress(in.take(len(macAddress{}))).String()
	}
	l.IAID = binary.BigEndian.Uint32(in.take(4))
	l.Since, l.Renewed, l.Expires = in.time(), in.time(), in.time()
	in.need(!l.Expires.IsZero() && len(in.rest) <= maxLeaseSize)
	l.ClientID = string(in.rest)
}

func (in *leaseReader) time() time.Time {
	n := int64(binary.BigEndian.Uint64(in.take(8)))
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// macAddress is a 48-bit MAC address.
type macAddress [6]byte

// parseMAC reads a MAC address in any spelling that model.CanonicalMAC takes.
func parseMAC(s string) (mac macAddress, ok bool) {
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
func readColons(mac *macAddress, s string) bool {
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
func (m macAddress) String() string {
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

// isStation reports whether m can be one machine's: it is neither a group's, nor
// everybody's, nor nobody's (IEEE 802 §8.2).
func (m macAddress) isStation() bool { return m != macAddress{} && m[0]&1 == 0 }

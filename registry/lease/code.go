package lease

import (
	"bytes"
	"cmp"
	"encoding/binary"
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
//	value: version 1, flags, role, MAC address (6 bytes, if flagged), Nth (1 byte, if
//	       flagged), IAID (4 bytes), Since, Renewed and Expires (8 bytes each), client identifier (the rest)
//
// A lease by a relay has behind a zero byte that relay: the length of its address, the address,
// the length of the circuit ID, the circuit ID, the remote ID (the rest).
//
// Numbers are big-endian, so the names of neighbours in a pool are neighbours in a
// tree, and are written together.
const (
	version = 1
	// MaxSize is how many bytes name and value may have together.
	MaxSize = 4 << 10

	flagDeclined = 1 << 0
	flagHasMAC   = 1 << 1
	flagUnproven = 1 << 2
	flagNth      = 1 << 3

	roleBMC  = 'b'
	roleHost = 'h'

	familyIPv4 = '4'
	familyIPv6 = '6'
)

// errUnreadable is what is wrong with a lease whose bytes are not as they should be.
var errUnreadable = errors.New("stored lease: not as ingot encodes it")

// noTime stands for the zero time, which is too early for a count of nanoseconds.
const noTime = math.MinInt64

// nameOf returns the name that a lease is stored under.
func nameOf(l *model.Lease) (string, error) {
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

// Encode returns what a lease is stored as: its name, and a value, which is nil for
// one that has no Expires and so is to be forgotten.
func Encode(l *model.Lease) (name string, value []byte, err error) {
	name, err = nameOf(l)
	if err != nil || l.Expires.IsZero() {
		return name, nil, err
	}
	if value, err = valueOf(l); err != nil {
		return "", nil, fmt.Errorf("lease of %s on network %s: %w", l.Address, l.Network, err)
	}
	if size := len(name) + len(value); size > MaxSize {
		return "", nil, fmt.Errorf("lease of %s: it has %d bytes, allowed are %d", l.Address, size, MaxSize)
	}
	return name, value, nil
}

func valueOf(l *model.Lease) ([]byte, error) {
	role, err := roleByte(l.Role)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 0, 37+len(l.ClientID))
	raw = append(raw, version, 0, role)
	if l.Declined {
		raw[1] |= flagDeclined
	}
	if l.Unproven {
		raw[1] |= flagUnproven
	}
	if l.MAC != "" {
		mac, ok := model.ParseMAC(l.MAC)
		if !ok || mac.String() != l.MAC {
			return nil, fmt.Errorf("%.64q is no canonical MAC address", l.MAC)
		}
		raw[1] |= flagHasMAC
		raw = append(raw, mac[:]...)
	}
	if l.Nth != 0 {
		if l.Nth < 0 || l.Nth > math.MaxUint8 {
			return nil, fmt.Errorf("it is the lease %d of its interface, allowed are 0 to %d", l.Nth, math.MaxUint8)
		}
		raw[1] |= flagNth
		raw = append(raw, byte(l.Nth))
	}
	raw = binary.BigEndian.AppendUint32(raw, l.IAID)
	for _, t := range []time.Time{l.Since, l.Renewed, l.Expires} {
		n, err := nanoseconds(t)
		if err != nil {
			return nil, err
		}
		raw = binary.BigEndian.AppendUint64(raw, uint64(n))
	}
	return appendRelay(append(raw, l.ClientID...), l)
}

func appendRelay(raw []byte, l *model.Lease) ([]byte, error) {
	r := &l.Relay
	switch {
	case strings.Contains(l.ClientID, "\x00"):
		return nil, fmt.Errorf("%.64q is no client identifier in hexadecimal", l.ClientID)
	case !r.Address.IsValid():
		return raw, nil
	case len(r.CircuitID) > math.MaxUint8 || r.Address.Zone() != "":
		return nil, fmt.Errorf("%s is no relay, or %.64q no circuit ID", r.Address, r.CircuitID)
	}
	address := r.Address.AsSlice()
	raw = append(append(raw, 0, byte(len(address))), address...)
	raw = append(append(raw, byte(len(r.CircuitID))), r.CircuitID...)
	return append(raw, r.RemoteID...), nil
}

func roleByte(role model.NetworkRole) (byte, error) {
	switch role {
	case model.RoleBMC:
		return roleBMC, nil
	case model.RoleHost:
		return roleHost, nil
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

// Decode is the inverse of Encode. What it returns shares
// no memory with what it is given.
func Decode(name, value []byte) (model.Lease, error) {
	var l model.Lease
	in := reader{name: name, rest: value, ok: true}
	in.readName(&l)
	in.readValue(&l)
	if !in.ok {
		return model.Lease{}, errUnreadable
	}
	return l, nil
}

// reader takes the bytes of a lease apart. When some are missing or mean
// nothing, ok is false and nothing else is of use.
type reader struct {
	name, rest []byte
	ok         bool
}

func (in *reader) need(ok bool) bool {
	in.ok = in.ok && ok
	return in.ok
}

// take returns the next n bytes of the value, zeros where it has no more.
func (in *reader) take(n int) []byte {
	if !in.need(len(in.rest) >= n) {
		return make([]byte, n)
	}
	taken := in.rest[:n]
	in.rest = in.rest[n:]
	return taken
}

func (in *reader) readName(l *model.Lease) {
	network, key, found := strings.Cut(string(in.name), "\x00")
	if !in.need(found && network != "" && len(in.name) <= MaxSize && len(key) > 2) {
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

func (in *reader) readValue(l *model.Lease) {
	head := in.take(3)
	flags := head[1]
	if !in.need(head[0] == version && flags&^(flagDeclined|flagHasMAC|flagUnproven|flagNth) == 0) {
		return
	}
	l.Declined, l.Unproven = flags&flagDeclined != 0, flags&flagUnproven != 0
	switch head[2] {
	case roleBMC:
		l.Role = model.RoleBMC
	case roleHost:
		l.Role = model.RoleHost
	default:
		in.ok = false
	}
	if flags&flagHasMAC != 0 {
		l.MAC = model.MAC(in.take(len(model.MAC{}))).String()
	}
	if flags&flagNth != 0 {
		l.Nth = int(in.take(1)[0])
		in.need(l.Nth > 0)
	}
	l.IAID = binary.BigEndian.Uint32(in.take(4))
	l.Since, l.Renewed, l.Expires = in.time(), in.time(), in.time()
	in.need(!l.Expires.IsZero() && len(in.rest) <= MaxSize)
	client, relay, relayed := bytes.Cut(in.rest, []byte{0})
	l.ClientID = string(client)
	if relayed {
		in.rest = relay
		in.readRelay(&l.Relay)
	}
}

func (in *reader) readRelay(r *model.LeaseRelay) {
	address, ok := netip.AddrFromSlice(in.take(int(in.take(1)[0])))
	r.Address = address
	in.need(ok)
	r.CircuitID = string(in.take(int(in.take(1)[0])))
	r.RemoteID = string(in.rest)
}

func (in *reader) time() time.Time {
	n := int64(binary.BigEndian.Uint64(in.take(8)))
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// LastSeen is when a lease was last asked for.
func LastSeen(l *model.Lease) time.Time {
	if l.Renewed.After(l.Since) {
		return l.Renewed
	}
	return l.Since
}

// Compare orders by what names a lease.
func Compare(a, b model.Lease) int {
	return cmp.Or(cmp.Compare(a.Network, b.Network), a.Address.Compare(b.Address), cmp.Compare(a.Bits, b.Bits))
}

package lease

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// Range is the addresses from First to Last, both included. The zero Range holds
// none.
type Range struct{ First, Last netip.Addr }

// IsZero reports whether r was left out.
func (r Range) IsZero() bool { return !r.First.IsValid() && !r.Last.IsValid() }

// Contains reports whether a lies in r.
func (r Range) Contains(a netip.Addr) bool {
	return r.First.IsValid() && r.First.Is4() == a.Is4() && r.First.Compare(a) <= 0 && a.Compare(r.Last) <= 0
}

// String returns r as it is written in the configuration.
func (r Range) String() string {
	if r.IsZero() {
		return ""
	}
	return r.First.String() + "-" + r.Last.String()
}

// MarshalText implements encoding.TextMarshaler.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads "192.0.2.10-192.0.2.99", or "" for none. Whether the range
// makes sense in its subnet is for Check to say.
func (r *Range) UnmarshalText(text []byte) error {
	*r = Range{}
	if len(text) == 0 {
		return nil
	}
	first, last, ok := strings.Cut(string(text), "-")
	if !ok {
		return fmt.Errorf("range %q must be two addresses with a dash between, as 192.0.2.10-192.0.2.99", text)
	}
	var err error
	if r.First, err = parseRangeEnd(first); err != nil {
		return fmt.Errorf("range %q: its first address: %w", text, err)
	}
	if r.Last, err = parseRangeEnd(last); err != nil {
		return fmt.Errorf("range %q: its last address: %w", text, err)
	}
	return nil
}

func parseRangeEnd(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	if a.Zone() != "" || a.Is4In6() {
		return netip.Addr{}, fmt.Errorf("%q must be a plain IPv4 or IPv6 address, without zone", s)
	}
	return a, nil
}

func (r Range) overlaps(other Range) bool { return r.Contains(other.First) || other.Contains(r.First) }

// Overlap returns the first two of ranges that share an address.
func Overlap(ranges []Range) (a, b Range, ok bool) {
	for i, r := range ranges {
		for _, other := range ranges[:i] {
			if r.overlaps(other) {
				return other, r, true
			}
		}
	}
	return Range{}, Range{}, false
}

// Without returns what of ranges lies in none of the excluded ones, in order.
func Without(ranges, excluded []Range) (left []Range) {
	byFirst := func(a, b Range) int { return a.First.Compare(b.First) }
	ranges, excluded = slices.SortedFunc(slices.Values(ranges), byFirst), slices.SortedFunc(slices.Values(excluded), byFirst)
	for _, r := range ranges {
		for _, x := range excluded {
			if !r.IsZero() && r.overlaps(x) {
				if r.First.Less(x.First) {
					left = append(left, Range{r.First, x.First.Prev()})
				}
				if r.First = x.Last.Next(); !r.First.IsValid() || r.Last.Less(r.First) {
					r = Range{}
				}
			}
		}
		if !r.IsZero() {
			left = append(left, r)
		}
	}
	return left
}

type number struct{ hi, lo uint64 }

func numberOf(a netip.Addr) number {
	if a.Is4() {
		b := a.As4()
		return number{lo: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// address returns n as an IPv4 or IPv6 address.
func (n number) address(v4 bool) netip.Addr {
	if v4 {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n.lo))))
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	return netip.AddrFrom16(b)
}

// plus returns n + 2^shift.
func (n number) plus(shift int) number {
	if shift >= 64 {
		return number{n.hi + 1<<(shift-64), n.lo}
	}
	sum := number{n.hi, n.lo + 1<<shift}
	if sum.lo < n.lo {
		sum.hi++
	}
	return sum
}

func (n number) minus(m number) number {
	d := number{n.hi - m.hi, n.lo - m.lo}
	if n.lo < m.lo {
		d.hi--
	}
	return d
}

// isMultiple reports whether n is a multiple of 2^shift.
func (n number) isMultiple(shift int) bool {
	if shift >= 64 {
		return n.lo == 0 && n.hi&(1<<(shift-64)-1) == 0
	}
	return n.lo&(1<<shift-1) == 0
}

func (n number) less(m number) bool { return n.hi < m.hi || n.hi == m.hi && n.lo < m.lo }

// steps returns how many steps of 2^shift lie from first to last, both included,
// or the largest number there is.
func steps(first, last number, shift int) uint64 {
	d := last.minus(first)
	if shift >= 64 {
		d = number{lo: d.hi >> (shift - 64)}
	} else if shift > 0 {
		d = number{d.hi >> shift, d.lo>>shift | d.hi<<(64-shift)}
	}
	if d.hi > 0 || d.lo == math.MaxUint64 {
		return math.MaxUint64
	}
	return d.lo + 1
}

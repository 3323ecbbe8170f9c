package config

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
)

// ByteSize is an amount of storage in bytes, written as "20GiB".
type ByteSize int64

var (
	_ encoding.TextUnmarshaler = (*ByteSize)(nil)
	_ encoding.TextMarshaler   = ByteSize(0)
)

// byteUnits are the units of a ByteSize, the longest suffix first.
var byteUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler: a whole number and a unit
// of kB, MB, GB, TB or KiB, MiB, GiB, TiB; bytes without one.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(s, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > int64(1<<62)/unit.bytes {
			break
		}
		*b = ByteSize(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size; write a whole number and a unit (MiB, GiB, TiB), such as 20GiB", s)
}

// MarshalText implements encoding.TextMarshaler.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String returns the size with the largest binary unit that divides it.
func (b ByteSize) String() string {
	for i := 3; i >= 0; i-- {
		if unit := byteUnits[i]; b != 0 && int64(b)%unit.bytes == 0 {
			return strconv.FormatInt(int64(b)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

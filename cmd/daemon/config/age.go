package config

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age is a long time, written in days: "90d". Shorter units may be used as well.
type Age time.Duration

var (
	_ encoding.TextUnmarshaler = (*Age)(nil)
	_ encoding.TextMarshaler   = Age(0)
)

const (
	day     = 24 * time.Hour
	maxDays = 36500
)

// UnmarshalText implements encoding.TextUnmarshaler: a whole number of days, 0, or a
// duration such as 36h.
func (a *Age) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			*a = Age(time.Duration(n) * day)
			return nil
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		*a = Age(d)
		return nil
	}
	return fmt.Errorf("%q is no age; write a whole number of days, such as 90d", s)
}

// MarshalText implements encoding.TextMarshaler.
func (a Age) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String returns the age in days, if it is that.
func (a Age) String() string {
	d := time.Duration(a)
	if d != 0 && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return d.String()
}

// Package text writes what messages to people have in common.
package text

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plural is a number with its noun: "1 server", "2 servers".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes writes an amount of bytes in units of thousands, as disks are sold: 645 MB, 1.2 TB.
func Bytes(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	value, unit := float64(n), 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	if value < 9.95 && unit > 0 {
		return fmt.Sprintf("%.1f %s", value, units[unit])
	}
	return fmt.Sprintf("%.0f %s", value, units[unit])
}

// Time is a time in UTC, to the second.
func Time(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// maxListed is how many entries of a list are named.
const maxListed = 3

// List joins the first of the entries, and says how many more there are.
func List(entries []string, separator string) string {
	if more := len(entries) - maxListed; more > 0 {
		entries = append(slices.Clone(entries[:maxListed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(entries, separator)
}

// Clip is what stands in a text from outside without the blanks around it, valid UTF-8
// of at most so many bytes.
func Clip(s string, most int) string {
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

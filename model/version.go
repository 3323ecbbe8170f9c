package model

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version says when a record was last changed: with which fencing number, and with
// which of that leader's writes to the store. Of two copies of a record the one with
// the higher Version is the newer, wherever they were kept. The zero Version is older
// than all others.
type Version struct {
	Fence uint64 // of the leader that wrote
	Seq   uint64 // grows with each of its commits to the store
}

// Compare returns -1, 0 or 1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Fence, w.Fence), cmp.Compare(v.Seq, w.Seq))
}

// After reports whether v is newer than w.
func (v Version) After(w Version) bool { return v.Compare(w) > 0 }

// IsZero reports whether v is the zero Version, as of records that were written
// before there were versions.
func (v Version) IsZero() bool { return v == Version{} }

// String returns "fence.seq", such as 102.5731.
func (v Version) String() string {
	return strconv.FormatUint(v.Fence, 10) + "." + strconv.FormatUint(v.Seq, 10)
}

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what String writes.
func (v *Version) UnmarshalText(text []byte) error {
	fence, seq, ok := strings.Cut(string(text), ".")
	f, fenceErr := strconv.ParseUint(fence, 10, 64)
	s, seqErr := strconv.ParseUint(seq, 10, 64)
	if !ok || fenceErr != nil || seqErr != nil {
		return fmt.Errorf("%q is no version: it is written as two numbers with a dot between, such as 102.5731", text)
	}
	*v = Version{Fence: f, Seq: s}
	return nil
}

package efi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State is what the firmware would start.
type State struct {
	Current *uint16 // that the running system was started by; nil = it does not say
	Order   []uint16
	Next    *uint16
	Options map[uint16]Option
}

// Change is what is to be written to the firmware, in this order: options, order, next, and then
// what is deleted.
type Change struct {
	Number uint16  // of Option
	Option *Option // nil = none is written
	Order  []uint16
	Next   *uint16
	Delete []uint16
	// DropNext has the firmware forget what it would start next.
	DropNext bool
}

// Place decides how an option comes to be started: it has the number of the one with its label,
// or the lowest that is free, and its place in the order is behind the network entry that the
// machine was started by, so that Ingot is asked first from then on; else it is the first. Other
// options with its label are deleted.
func Place(s State, o Option) (Change, error) {
	var same []uint16
	for _, number := range slices.Sorted(maps.Keys(s.Options)) {
		if s.Options[number].Label == o.Label {
			same = append(same, number)
		}
	}
	c := Change{Option: &o}
	if len(same) > 0 {
		c.Number, c.Delete = same[0], same[1:]
	} else {
		for s.Options[c.Number].Path != nil {
			if c.Number == 0xffff {
				return Change{}, fmt.Errorf("all numbers of boot options are taken")
			}
			c.Number++
		}
	}
	c.Order = slices.DeleteFunc(slices.Clone(s.Order), func(n uint16) bool { return n == c.Number || slices.Contains(same, n) })
	at := 0
	if s.Current != nil && s.Options[*s.Current].Network() {
		at = slices.Index(c.Order, *s.Current) + 1 // first, if it is not in the order
	}
	c.Order = slices.Insert(c.Order, at, c.Number)
	c.Next = &c.Number
	return c, nil
}

// Remove decides what to take away so that no option is left whose label begins with prefix.
func Remove(s State, prefix string) Change {
	c := Change{Order: s.Order}
	for _, number := range slices.Sorted(maps.Keys(s.Options)) {
		if strings.HasPrefix(s.Options[number].Label, prefix) {
			c.Delete = append(c.Delete, number)
		}
	}
	c.Order = slices.DeleteFunc(slices.Clone(s.Order), func(n uint16) bool { return slices.Contains(c.Delete, n) })
	c.DropNext = s.Next != nil && slices.Contains(c.Delete, *s.Next)
	return c
}

package reconcile

import (
	"slices"
	"strings"

	"ingot/model"
)

// What people ask for once, in ServerRecord.HandledBefore.
const (
	askedOperation   = "operation"
	askedReprovision = "reprovision"
	askedDiscover    = "discover"
	askedDisks       = "disks"
)

// maxHandled is how many values that were handled before are remembered.
const maxHandled = 32

// latest is where a record keeps the newest value that was handled.
func latest(rec *model.ServerRecord, asked string) *string {
	switch asked {
	case askedOperation:
		return &rec.HandledOperation
	case askedReprovision:
		return &rec.HandledReprovision
	case askedDiscover:
		return &rec.HandledDiscover
	case askedDisks:
		return &rec.HandledDisks
	}
	panic("nothing is handled that is called " + asked)
}

// wasHandled reports whether a value was handled, now or at some time: a revert
// to a former value asks for nothing.
func wasHandled(rec *model.ServerRecord, asked, value string) bool {
	return value == *latest(rec, asked) || slices.Contains(rec.HandledBefore, asked+"="+value)
}

// handle notes that a value is handled.
func handle(rec *model.ServerRecord, asked, value string) {
	l := latest(rec, asked)
	if *l == value {
		return
	}
	if *l != "" {
		before := append(slices.Clone(rec.HandledBefore), asked+"="+*l)
		rec.HandledBefore = before[max(0, len(before)-maxHandled):]
	}
	*l = value
}

// handleAnew forgets what another claim asked of the server, and notes what
// stands in Git already as handled.
func handleAnew(rec *model.ServerRecord, asked, value string) {
	rec.HandledBefore = slices.DeleteFunc(slices.Clone(rec.HandledBefore), func(v string) bool {
		return strings.HasPrefix(v, asked+"=")
	})
	*latest(rec, asked) = value
}

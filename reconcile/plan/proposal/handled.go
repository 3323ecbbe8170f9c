package proposal

import (
	"slices"
	"strings"

	"ingot/model"
)

// What people ask for once, in ServerRecord.HandledBefore.
const (
	AskedOperation   = "operation"
	AskedReprovision = "reprovision"
	AskedDiscover    = "discover"
	AskedDisks       = "disks"
	AskedOverwrite   = "overwrite"
)

const maxHandled = 32

// latestHandled is where a record keeps the newest value that was handled.
func latestHandled(rec *model.ServerRecord, asked string) *string {
	switch asked {
	case AskedOperation:
		return &rec.Requests.HandledOperation
	case AskedReprovision:
		return &rec.Requests.HandledReprovision
	case AskedDiscover:
		return &rec.Requests.HandledDiscover
	case AskedDisks:
		return &rec.Requests.HandledDisks
	case AskedOverwrite:
		return &rec.Requests.HandledOverwrite
	}
	panic("nothing is handled that is called " + asked)
}

// WasHandled reports whether a value was ever handled: a revert to a former value asks for nothing.
func WasHandled(rec *model.ServerRecord, asked, value string) bool {
	return value == *latestHandled(rec, asked) || slices.Contains(rec.Requests.HandledBefore, asked+"="+value)
}

// MarkHandled notes that a value is handled.
func MarkHandled(rec *model.ServerRecord, asked, value string) {
	l := latestHandled(rec, asked)
	if *l == value {
		return
	}
	if *l != "" {
		before := append(slices.Clone(rec.Requests.HandledBefore), asked+"="+*l)
		rec.Requests.HandledBefore = before[max(0, len(before)-maxHandled):]
	}
	*l = value
}

// ResetHandled forgets the requests of another claim; the value in Git already counts as handled.
func ResetHandled(rec *model.ServerRecord, asked, value string) {
	rec.Requests.HandledBefore = slices.DeleteFunc(slices.Clone(rec.Requests.HandledBefore), func(v string) bool {
		return strings.HasPrefix(v, asked+"=")
	})
	*latestHandled(rec, asked) = value
}

package diskimage

import (
	"fmt"

	"ingot/model"
)

// Error says why a disk image cannot be used, for people.
type Error struct {
	Reason  model.Reason
	Message string
	Err     error // what lies beneath, or nil
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns what lies beneath.
func (e *Error) Unwrap() error { return e.Err }

// refuse returns an Error for an image that is there but cannot be taken.
func refuse(reason model.Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Stage is how far the preparation of an image has come.
type Stage string

// The stages of a preparation, in order.
const (
	StageQueued  Stage = "queued"  // others are fetched or converted first
	StageFetch   Stage = "fetch"   // and its digest runs along
	StageConvert Stage = "convert" // to chunks
	StageCheck   Stage = "check"   // of its partition table and of how it starts
)

// Preparing is returned for an image that is being prepared: ask again in a few seconds.
type Preparing struct {
	Stage       Stage
	Done, Total int64 // bytes of the stage; a Total of 0 is not known
}

// Error implements error.
func (p *Preparing) Error() string {
	what := map[Stage]string{
		StageQueued: "waits until other disk images are prepared", StageFetch: "is being fetched",
		StageConvert: "is being converted", StageCheck: "is being looked at",
	}[p.Stage]
	switch {
	case p.Done == 0 && p.Total == 0:
		return "the disk image " + what
	case p.Total == 0:
		return fmt.Sprintf("the disk image %s: %s so far", what, sizeText(p.Done))
	}
	return fmt.Sprintf("the disk image %s: %s of %s", what, sizeText(p.Done), sizeText(p.Total))
}

func sizeText[T int64 | uint64 | int](n T) string {
	switch size := float64(n); {
	case size >= 1<<40:
		return fmt.Sprintf("%.1f TiB", size/(1<<40))
	case size >= 1<<30:
		return fmt.Sprintf("%.1f GiB", size/(1<<30))
	case size >= 1<<20:
		return fmt.Sprintf("%.1f MiB", size/(1<<20))
	case size >= 1<<10:
		return fmt.Sprintf("%.1f KiB", size/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

package reconcile

import "time"

// haste says when a publication leaves out what can wait.
type haste int

const (
	hurryNever        haste = iota
	hurryForDecisions       // where the report has a decision that waits for it
	hurryAlways
)

// leftOut is what publications left out because it can wait.
type leftOut struct {
	since time.Time // zero = there is nothing
	late  bool      // the last publication left it out once more, though its time had come
}

// haste is that of a publication at now. What can wait does so for an interval, however
// many decisions follow one another, and where one waits then, for one publication more.
func (l leftOut) haste(now time.Time, interval time.Duration, urgent bool) haste {
	switch due := !l.since.IsZero() && now.Sub(l.since) >= interval; {
	case due && (l.late || !urgent):
		return hurryNever
	case urgent:
		return hurryAlways
	}
	return hurryForDecisions
}

// after is what is left out after a publication at now.
func (l leftOut) after(now time.Time, interval time.Duration, hurried bool) leftOut {
	if !hurried {
		return leftOut{}
	}
	if l.since.IsZero() {
		l.since = now
	}
	l.late = now.Sub(l.since) >= interval
	return l
}

package gitsource

import (
	"errors"
	"time"
)

// putOff is an error of a server that said when it wants to be asked again.
type putOff struct {
	err   error
	after time.Duration
}

// Error implements error.
func (p *putOff) Error() string { return p.err.Error() }

// Unwrap returns the error itself.
func (p *putOff) Unwrap() error { return p.err }

// RetryAfter returns for how long the server that err comes from wants to be left
// alone (RFC 9110 §10.2.3), at most half an hour; false if it did not say.
func RetryAfter(err error) (time.Duration, bool) {
	p, ok := errors.AsType[*putOff](err)
	if !ok {
		return 0, false
	}
	return p.after, true
}

// postponed adds to err what the server said of when to come back.
func (b *StatusBranch) postponed(err error) error {
	if after := time.Duration(b.remote.away.Swap(0)); after > 0 {
		return &putOff{err, after}
	}
	return err
}

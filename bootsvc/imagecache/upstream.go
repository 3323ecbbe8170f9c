package imagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Fetch returns a blob's bytes from offset on. It returns ErrNoOffset when its source
// can only begin at the beginning, and is then asked for that. It wraps what went
// wrong so that people know which registry is meant.
type Fetch func(ctx context.Context, offset int64) (io.ReadCloser, error)

// ErrNoOffset is returned by a Fetch that cannot begin in the middle of a blob.
var ErrNoOffset = errors.New("the registry does not serve parts of blobs")

// ErrCorrupt is returned for a blob that is not what its digest and size say.
var ErrCorrupt = errors.New("its source sent other bytes than the blob's digest and size say")

var (
	errStalled = errors.New("the registry sent nothing for a while")
	errSlow    = errors.New("the registry took longer for the blob than any network should")
	errShort   = errors.New("the registry ended the blob before its size")
)

const (
	maxSetbacks = 4        // times in a row that it was cut off without a new byte
	maxAttempts = 256      // times in all
	slowest     = 32 << 10 // bytes a second that it has to make on average
	allowance   = time.Minute
)

// upstream reads one blob from its registry, from a given byte on, and goes on where
// it was cut off. It does not verify what it reads.
type upstream struct {
	key     Key
	fetch   Fetch
	stall   time.Duration // how long nothing may come
	backoff time.Duration // before the first repetition
	resumed func()        // counts what goes on after it was cut off

	offset   int64 // of the next byte
	body     io.ReadCloser
	watch    *time.Timer // ends the attempt when nothing comes
	cancel   context.CancelCauseFunc
	cause    func() error // why the attempt was ended, or nil
	attempts int
	setbacks int
}

// open begins to fetch. What fails here is final: there is nothing to resume yet.
func (u *upstream) open(ctx context.Context) error {
	if u.body != nil {
		return nil
	}
	u.attempts++
	attempt, cancel := context.WithCancelCause(ctx)
	u.cancel, u.cause = cancel, func() error { return context.Cause(attempt) }
	u.watch = time.AfterFunc(u.stall, func() { cancel(errStalled) })
	body, err := u.seek(attempt)
	u.watch.Stop()
	if err != nil {
		err = u.why(err)
		u.close()
		return err
	}
	u.body = body
	return nil
}

// seek returns the bytes from offset on, whatever the registry can do.
func (u *upstream) seek(ctx context.Context) (io.ReadCloser, error) {
	body, err := u.fetch(ctx, u.offset)
	if u.offset == 0 || !errors.Is(err, ErrNoOffset) {
		return body, err
	}
	if body, err = u.fetch(ctx, 0); err != nil {
		return nil, err
	}
	if err := u.pass(body); err != nil {
		body.Close()
		return nil, err
	}
	return body, nil
}

// pass passes over what was read before.
func (u *upstream) pass(body io.Reader) error {
	for left := u.offset; left > 0; {
		u.watch.Reset(u.stall)
		n, err := io.CopyN(io.Discard, body, min(left, 1<<20))
		if left -= n; err != nil && left > 0 {
			return err
		}
	}
	return nil
}

// why returns the reason that an attempt was ended for, rather than what its end
// looked like.
func (u *upstream) why(err error) error {
	if cause := u.cause(); cause != nil {
		return cause
	}
	return err
}

// close ends the attempt under way.
func (u *upstream) close() {
	if u.body != nil {
		u.body.Close()
	}
	if u.cancel != nil {
		u.watch.Stop()
		u.cancel(nil)
	}
	u.body, u.cancel = nil, nil
}

// read reads the next bytes. It returns io.EOF when the blob had its size exactly.
func (u *upstream) read(ctx context.Context, p []byte) (int, error) {
	if u.offset == u.key.Size {
		return 0, u.finish(ctx)
	}
	for {
		n, err := u.try(ctx, p[:min(int64(len(p)), u.key.Size-u.offset)])
		if n > 0 {
			u.offset += int64(n)
			u.setbacks = 0
			return n, nil
		}
		u.close()
		if err := u.pause(ctx, err); err != nil {
			return 0, err
		}
	}
}

// try reads once, from a new attempt if there is none.
func (u *upstream) try(ctx context.Context, p []byte) (int, error) {
	if err := u.open(ctx); err != nil {
		return 0, err
	}
	u.watch.Reset(u.stall)
	n, err := u.body.Read(p)
	u.watch.Stop()
	switch {
	case n > 0:
		return n, nil
	case err == io.EOF:
		return 0, errShort
	case err == nil:
		return 0, io.ErrNoProgress
	}
	return 0, u.why(err)
}

// pause waits before the next attempt, or returns err when there shall be none.
func (u *upstream) pause(ctx context.Context, err error) error {
	u.setbacks++
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u.setbacks >= maxSetbacks || u.attempts >= maxAttempts {
		return fmt.Errorf("given up at byte %d of %d: %w", u.offset, u.key.Size, err)
	}
	u.resumed()
	timer := time.NewTimer(u.backoff << (u.setbacks - 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish sees whether the blob ends where it should.
func (u *upstream) finish(ctx context.Context) error {
	if u.body == nil {
		return io.EOF
	}
	defer u.close()
	u.watch.Reset(u.stall)
	var one [1]byte
	n, _ := io.ReadFull(u.body, one[:]) // all bytes are here: how the connection ends is no matter
	switch {
	case n > 0:
		return fmt.Errorf("it goes on behind byte %d: %w", u.key.Size, ErrCorrupt)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return io.EOF
}

// longest returns how long the fetch of a blob may take in all.
func longest(size int64) time.Duration {
	return allowance + time.Duration(size/slowest)*time.Second
}

package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// maxTries is how often a registry is asked for the same thing that it could not give.
const maxTries = 3

// patient is a RoundTripper that asks again what a registry could not answer at present.
type patient struct {
	next  http.RoundTripper
	limit time.Duration // for how long it asks again, in all
	pause time.Duration // before it asks for the second time, unless it is told
}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	end := time.Now().Add(p.limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	for try := 1; ; try++ {
		resp, err := p.next.RoundTrip(req)
		if req.Body != nil && req.Body != http.NoBody || try == maxTries || !passing(resp, err) {
			return resp, err
		}
		now := time.Now()
		wait, told := askedToWait(resp, now)
		if !told {
			wait = p.pause << (try - 1)
		}
		if now.Add(wait).After(end) {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passing reports whether an answer, or its lack, may be another soon.
func passing(resp *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// askedToWait returns how long an answer asks to be left alone (RFC 9110 §10.2.3).
func askedToWait(resp *http.Response, now time.Time) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

package oci

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// maxTries is how often a registry is asked for the same thing that it could not give.
const maxTries = 3

// retries says when a registry is asked again what it could not answer at present.
type retries struct {
	limit time.Duration // for how long, in all
	pause time.Duration // before it is asked for the second time, unless it says when
}

func (r *retries) transport(next http.RoundTripper) http.RoundTripper {
	return &retry.Transport{Base: next, Policy: func() retry.Policy {
		return retryPolicy{r.pause, time.Now().Add(r.limit)}
	}}
}

// retryPolicy is the retry.Policy of one request. retry's own would ask again sooner than
// a registry that is down wants it to, and wait for longer than anybody does.
type retryPolicy struct {
	pause time.Duration
	end   time.Time
}

// Retry implements retry.Policy: it returns how long to wait, or less than nothing to
// leave it at that.
func (p retryPolicy) Retry(attempt int, resp *http.Response, err error) (time.Duration, error) {
	if attempt+1 >= maxTries || !passing(resp, err) {
		return -1, nil
	}
	now := time.Now()
	wait, told := askedToWait(resp, now)
	if !told {
		wait = p.pause << attempt
	}
	end := p.end
	if resp != nil {
		if deadline, ok := resp.Request.Context().Deadline(); ok && deadline.Before(end) {
			end = deadline
		}
	}
	if now.Add(wait).After(end) {
		return -1, nil
	}
	return wait, nil
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

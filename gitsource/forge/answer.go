package forge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// outcome is what came of an attempt to post a status, the label of a counter.
type outcome string

const (
	outcomePosted       outcome = "posted"
	outcomeUnauthorized outcome = "unauthorized" // the token is not taken, or may not do it
	outcomeNotFound     outcome = "not_found"    // the project, or the token does not show it
	outcomeThrottled    outcome = "throttled"    // asked too often
	outcomeRefused      outcome = "refused"      // the forge does not take what is posted
	outcomeUnavailable  outcome = "unavailable"  // no answer, or the forge has trouble of its own
)

var allOutcomes = []outcome{
	outcomePosted, outcomeUnauthorized, outcomeNotFound, outcomeThrottled, outcomeRefused, outcomeUnavailable,
}

// The waits after an attempt that came to nothing.
const (
	firstRetry    = 5 * time.Second
	longestRetry  = 10 * time.Minute
	throttled     = time.Minute // where the forge does not say how long
	needsSomebody = time.Hour   // until somebody changes the token or its rights
	longestAway   = time.Hour   // however long a forge says
)

// refusal is an answer other than that the status was taken.
type refusal struct {
	outcome outcome
	away    time.Duration // that the forge asked for, 0 if it did not say
	text    string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// wait is how long to leave the forge alone after a number of failures in a row: what it
// asked for at least, within bounds.
func (r *refusal) wait(failures int) time.Duration {
	least := r.away
	switch {
	case r.outcome == outcomeUnauthorized, r.outcome == outcomeNotFound:
		least = needsSomebody
	case r.outcome == outcomeThrottled && r.away == 0:
		least = throttled
	}
	again := min(firstRetry<<min(max(failures-1, 0), 10), longestRetry)
	return min(max(again, least), longestAway)
}

// refusalOf is what an answer means, nil if the status was taken.
func refusalOf(kind string, res *http.Response, text string, now time.Time) *refusal {
	said := excerpt(text)
	r := &refusal{outcome: outcomeRefused, away: awayOf(res.Header, now)}
	code := res.StatusCode
	limited := code == http.StatusForbidden &&
		(r.away > 0 || strings.Contains(strings.ToLower(said), "rate limit"))
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusBadRequest && kind == "gitlab" && strings.Contains(text, "Cannot transition status"):
		return nil // it is in that state already
	case code == http.StatusTooManyRequests, limited:
		r.outcome, r.text = outcomeThrottled, "the forge was asked too often"
	case code == http.StatusUnauthorized:
		r.outcome, r.text = outcomeUnauthorized, "the forge does not take the token of git.commitStatus.tokenFile"
	case code == http.StatusForbidden:
		r.outcome, r.text = outcomeUnauthorized, "the token of git.commitStatus.tokenFile may not post commit statuses"
	case code == http.StatusNotFound:
		r.outcome, r.text = outcomeNotFound, "the forge knows no such project or commit, or does not show it to the token; "+
			"look at git.url and git.commitStatus.url"
	case code >= 300 && code < 400:
		r.text = "the forge is elsewhere, at " + placeOf(res.Header.Get("Location")) +
			", where the token is not sent; look at git.commitStatus.url"
	case code >= 500:
		r.outcome, r.text = outcomeUnavailable, "the forge has trouble of its own"
	default:
		r.text = "the forge does not take the status"
	}
	r.text += " (" + strconv.Itoa(code) + ")"
	if said != "" {
		r.text += ": " + said
	}
	return r
}

func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "another address"
	}
	return excerpt(u.Host)
}

// awayOf is for how long a forge wants to be left alone: by Retry-After (RFC 9110 §10.2.3),
// or until the time at which its count begins anew, where nothing is left of it.
func awayOf(h http.Header, now time.Time) time.Duration {
	if v := h.Get("Retry-After"); v != "" {
		if seconds, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return time.Duration(min(max(seconds, 1), 1<<20)) * time.Second
		}
		if at, err := http.ParseTime(v); err == nil {
			return max(at.Sub(now), time.Second)
		}
		return throttled
	}
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} { // GitHub, GitLab
		at, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64)
		if h.Get(prefix+"Remaining") == "0" && err == nil {
			return max(time.Unix(at, 0).Sub(now), time.Second)
		}
	}
	return 0
}

// maxExcerpt bounds what is shown of an answer, in characters.
const maxExcerpt = 200

// excerpt is what an answer says: its message, where it is JSON with one, in one line.
func excerpt(text string) string {
	var said struct {
		Message any `json:"message"`
		Error   any `json:"error"`
	}
	if json.Unmarshal([]byte(text), &said) == nil {
		switch {
		case said.Message != nil:
			text = fmt.Sprint(said.Message)
		case said.Error != nil:
			text = fmt.Sprint(said.Error)
		}
	}
	line := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(line) > maxExcerpt {
		line = append(line[:maxExcerpt], '…')
	}
	return string(line)
}

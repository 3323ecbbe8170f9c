package notify

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// outcome is what came of an attempt, the label of a counter.
type outcome string

// The outcomes.
const (
	outcomeSent          outcome = "sent"
	outcomeRefused       outcome = "refused"       // the webhook does not take notices from us
	outcomeRejected      outcome = "rejected"      // it does not take this one
	outcomeThrottled     outcome = "throttled"     // it was asked too often
	outcomeUnavailable   outcome = "unavailable"   // no answer, or trouble of its own
	outcomeMisconfigured outcome = "misconfigured" // the files of our settings cannot be used
	outcomeGivenUp       outcome = "given_up"      // the message is dropped
)

var allOutcomes = []outcome{
	outcomeSent, outcomeRefused, outcomeRejected, outcomeThrottled, outcomeUnavailable, outcomeMisconfigured, outcomeGivenUp,
}

// failure is an attempt that came to nothing.
type failure struct {
	outcome outcome
	away    time.Duration // that the webhook asked for, 0 if it did not say
	text    string
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// failureOf is what an answer means, nil if the notice was taken.
func failureOf(res *http.Response, text string, now time.Time) *failure {
	f := &failure{away: retryAfter(res.Header, now)}
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests:
		f.outcome, f.text = outcomeThrottled, "the webhook was asked too often"
	case code >= 500, code == http.StatusRequestTimeout:
		f.outcome, f.text = outcomeUnavailable, "the webhook has trouble of its own"
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnsupportedMediaType, code == http.StatusUnprocessableEntity:
		f.outcome, f.text = outcomeRejected, "the webhook does not take this notice; look at its format"
	case code >= 300 && code < 400:
		f.outcome, f.text = outcomeRefused, "the webhook is elsewhere, and no secret is sent there: correct its address"
	default:
		f.outcome, f.text = outcomeRefused, "the webhook does not take notices with this address and these headers"
	}
	f.text += " (" + strconv.Itoa(res.StatusCode) + ")"
	if said := excerpt(text); said != "" {
		f.text += ": " + said
	}
	return f
}

// retryAfter is for how long a webhook wants to be left alone (RFC 9110 §10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(seconds, 1), 1<<20)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), time.Second)
	}
	return 0
}

// maxExcerpt bounds what is shown of an answer, in characters.
const maxExcerpt = 200

// excerpt is the beginning of an answer, in one line.
func excerpt(text string) string {
	line := []rune(oneLine(strings.Join(strings.Fields(text), " ")))
	if len(line) > maxExcerpt {
		line = append(line[:maxExcerpt], '…')
	}
	return string(line)
}

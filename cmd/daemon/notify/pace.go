package notify

import "time"

// pace is how long is waited for what.
type pace struct {
	look, step         time.Duration // between two looks at what stands, and at what is to be sent
	grace              time.Duration // within which another Ingot that led has told of everything
	quiet, settle      time.Duration // see notice.Rules
	first, longest     time.Duration // between attempts
	timeout            time.Duration // of an attempt
	giveUp             time.Duration // after which a message is dropped
	throttled, refused time.Duration // at least, until a webhook is asked again
}

func paceOf(fast bool) pace {
	if fast {
		return pace{
			look: 100 * time.Millisecond, step: 50 * time.Millisecond, grace: time.Second, quiet: time.Second, settle: 500 * time.Millisecond,
			first: 100 * time.Millisecond, longest: time.Second, timeout: 2 * time.Second, giveUp: time.Hour,
			throttled: time.Second, refused: time.Second,
		}
	}
	return pace{
		look: 2 * time.Second, step: time.Second, grace: 2 * time.Minute, quiet: 15 * time.Minute, settle: time.Minute,
		first: 5 * time.Second, longest: 10 * time.Minute, timeout: 30 * time.Second, giveUp: 24 * time.Hour,
		throttled: time.Minute, refused: 30 * time.Minute,
	}
}

// longestAway is how long a webhook is left alone at most, whatever it says.
const longestAway = time.Hour

// backoff is the pause after a number of failures in a row.
func (p pace) backoff(failures int) time.Duration {
	return min(p.first<<min(max(failures-1, 0), 20), p.longest)
}

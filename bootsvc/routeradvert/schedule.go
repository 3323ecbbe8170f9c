package routeradvert

import "time"

// When advertisements are sent: RFC 4861 §10.
const (
	maxInitial      = 3                      // MAX_INITIAL_RTR_ADVERTISEMENTS
	initialInterval = 16 * time.Second       // MAX_INITIAL_RTR_ADVERT_INTERVAL
	minDelay        = 3 * time.Second        // MIN_DELAY_BETWEEN_RAS
	maxAnswerDelay  = 500 * time.Millisecond // MAX_RA_DELAY_TIME
)

// schedule decides when the next advertisement is sent, to all machines on the link. chance is
// at least 0 and less than 1.
type schedule struct {
	interval time.Duration // at most between two
	sent     int
	last     time.Time // when one was sent last
	next     time.Time // when the next is due; zero = at once
}

// sentAt notes that one was sent, and plans the next: RFC 4861 §6.2.4.
func (s *schedule) sentAt(now time.Time, chance float64) {
	s.sent++
	s.last = now
	shortest := max(s.interval/3, minDelay)
	wait := shortest + time.Duration(chance*float64(s.interval-shortest))
	if s.sent < maxInitial {
		wait = min(wait, initialInterval)
	}
	s.next = now.Add(wait)
}

// solicited plans an answer to a solicitation: RFC 4861 §6.2.6. However many there are, the
// answers are minDelay apart.
func (s *schedule) solicited(now time.Time, chance float64) {
	at := now.Add(time.Duration(chance * float64(maxAnswerDelay)))
	if earliest := s.last.Add(minDelay); s.sent > 0 && at.Before(earliest) {
		at = earliest
	}
	if at.Before(s.next) {
		s.next = at
	}
}

// wait returns for how long nothing is to be sent.
func (s *schedule) wait(now time.Time) time.Duration { return max(0, s.next.Sub(now)) }

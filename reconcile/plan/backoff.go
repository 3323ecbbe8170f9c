package plan

import "time"

// pauseEnd is when a pause that was noted ends. One that lasts longer than any was noted by a clock
// that was ahead, and is none.
func (f *fleet) pauseEnd(noted time.Time, longest time.Duration) time.Time {
	if noted.After(f.in.Now.Add(longest)) {
		return time.Time{}
	}
	return noted
}

// notBefore is when the server's next attempt may be made after one that failed.
func (s *server) notBefore() time.Time {
	return s.fleet.pauseEnd(s.rec.Life.NotBefore, s.fleet.in.Policy.BackoffMax)
}

// notedAt is when what was noted took place: the start of this process, if the clock that noted it was
// ahead of the present one.
func (s *server) notedAt(noted time.Time) time.Time {
	if noted.After(s.now()) {
		return s.fleet.in.Started
	}
	return noted
}

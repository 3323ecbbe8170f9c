package proposal

import "time"

// Earliest is the earlier of two times.
func Earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// MaxBootPause is the longest pause between the tickets of a server that does not boot.
const MaxBootPause = 6 * time.Hour

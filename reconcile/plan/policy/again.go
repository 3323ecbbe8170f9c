package policy

import "time"

// PauseAfter is the pause after a server was brought back so many times in a row.
func (p Options) PauseAfter(again int) time.Duration {
	if again == 0 {
		return 0
	}
	return min(p.PowerPause<<min(again-1, 16), p.PowerPauseMax)
}

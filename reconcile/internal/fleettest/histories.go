package fleettest

import "os"

// Histories is how many random histories a test takes: few, or all when HISTORIES is
// set. The race detector makes each several times as long, and sees the same in few.
func Histories(few, all uint64) uint64 {
	if os.Getenv("HISTORIES") != "" {
		return all
	}
	return few
}

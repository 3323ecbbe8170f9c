package bench

import (
	"os"
	"testing"
)

// TestMain lets this program be its own yardsticks: in another process, so that their
// CPU time is measured apart from the rack's.
func TestMain(m *testing.M) {
	if os.Getenv(yardstickVariable) != "" {
		os.Exit(runYardstick(os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(bareVariable) != "" {
		os.Exit(runBare(os.Stdin, os.Stderr))
	}
	if os.Getenv(stormVariable) != "" {
		os.Exit(runStorm(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

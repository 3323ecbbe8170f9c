package bench

import (
	"os"
	"testing"
)

// TestMain lets this program be its own yardsticks: in another process, so that their
// CPU time is told apart from the rack's, and to be clients on another machine.
func TestMain(m *testing.M) {
	if os.Getenv(yardstickVariable) != "" {
		os.Exit(runYardstick(os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv(bareVariable) != "" {
		os.Exit(runBare(os.Stdin, os.Stderr))
	}
	if os.Getenv(tftpVariable) != "" {
		os.Exit(runTFTP(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

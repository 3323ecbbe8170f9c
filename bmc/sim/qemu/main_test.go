package qemu_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"ingot/bmc/sim"
	"ingot/model/must"
)

func TestMain(m *testing.M) {
	if how, fake := os.LookupEnv(fakeQEMUMode); fake && len(os.Args) > 1 && os.Args[1] == "-accel" {
		os.Exit(fakeQEMU(how))
	}
	goleak.VerifyTestMain(m)
}

// set sets a fault that the server must take.
func set(t *testing.T, s *sim.Server, f sim.Fault) {
	t.Helper()
	must.Do(t, s.SetFault(f))
}

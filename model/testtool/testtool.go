// Package testtool is for tests that need what a computer may lack: programs of others, root,
// loop devices. Where that is not here the test is skipped and says so; in continuous integration
// (INGOT_LAB=required) it fails, because there nobody would miss a proof that is left out.
package testtool

import (
	"os"
	"os/exec"
	"testing"
)

// Lacks ends a test because of what the message says is missing.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("INGOT_LAB") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED, AND NOTHING IS PROVED: "+format, args...)
}

// Path returns where a program is. Without it the test ends.
func Path(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Lacks(t, "%s is not installed: make setup", program)
	}
	return path
}

// Root ends the test unless it runs as root, which it takes to do what is said.
func Root(t testing.TB, what string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Lacks(t, "only root can %s", what)
	}
}

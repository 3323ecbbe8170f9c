// Package killtest has tests kill a process that writes, to see what of it is kept.
package killtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// dirVariable names, in the environment of a child, the folder where it writes.
const dirVariable = "INGOT_KILLTEST_DIR"

// Child makes this process write, if it was started by UntilKilled; it is to be called first
// in TestMain. The writer prints after each write how many values there are.
func Child(write func(dir string) error) {
	if dir := os.Getenv(dirVariable); dir != "" {
		fmt.Fprintln(os.Stderr, write(dir))
		os.Exit(1)
	}
}

// Rounds is how often a test is to start the writer again.
const Rounds = 3

// UntilKilled starts the test's program anew as a child that writes to dir, and kills it once
// it has acknowledged some more values than known. It returns how many it acknowledged.
func UntilKilled(t *testing.T, dir string, known int) (acknowledged int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dirVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	acknowledged = known
	for lines := bufio.NewScanner(out); acknowledged < known+40 && lines.Scan(); {
		if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
	}
	if acknowledged == 0 {
		t.Fatal("the child has written nothing")
	}
	return acknowledged
}

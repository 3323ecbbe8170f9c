package journal

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childDir names the folder where a child of this test appends until it is killed.
const childDir = "JOURNAL_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, appendUntilKilled(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// A process may be killed at any moment of a compaction, too: all that was appended is
// there afterwards.
func TestACompactionMayBeKilled(t *testing.T) {
	dir := t.TempDir()
	acknowledged := 0
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for end := acknowledged + 40; acknowledged < end && lines.Scan(); {
			if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		j := newJournal(t, dir, realCalls)
		total, _ := j.Count(func(func(string) bool) {})
		if total < acknowledged || acknowledged == 0 {
			t.Fatalf("%d leases of %d", total, acknowledged)
		}
		want := make(map[string]string)
		for i := range total {
			want[fmt.Sprint(i)] = "1"
		}
		wantJournal(t, j, want)
		if j.TakeDamage() != 0 {
			t.Error("it is damaged")
		}
		_ = j.Close()
		acknowledged = total
	}
}

// appendUntilKilled appends leases in pairs, compacts all the time, and says how many
// there are.
func appendUntilKilled(dir string) error {
	j, err := Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	n, _ := j.Count(func(func(string) bool) {})
	for ; ; n += 2 {
		j.compactAt = 0
		if err := j.Append(leasesOf(fmt.Sprint(n), "1", fmt.Sprint(n+1), "1")); err != nil {
			return err
		}
		fmt.Println(n + 2)
	}
}

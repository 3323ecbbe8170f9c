package journal

import (
	"fmt"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"ingot/registry/internal/killtest"
)

func TestMain(m *testing.M) {
	killtest.Child(appendUntilKilled)
	goleak.VerifyTestMain(m)
}

// A process may be killed at any moment of a compaction, too: all that was appended is
// there afterwards.
func TestACompactionMayBeKilled(t *testing.T) {
	dir := t.TempDir()
	kept := 0
	for range killtest.Rounds {
		acknowledged := killtest.UntilKilled(t, dir, kept)
		j := newJournal(t, dir, realCalls)
		total, _ := j.Count(func(func(string) bool) {})
		if total < acknowledged {
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
		kept = total
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

package store

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func resident(t *testing.T, path string) (kilobytes int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range bytes.Lines(maps) {
		fields := strings.Fields(string(line))
		switch {
		case len(fields) > 1 && strings.Contains(fields[0], "-"):
			inside = fields[len(fields)-1] == path
		case inside && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		}
	}
	return kilobytes
}

// A store that is not used does not keep the file in memory, and finds all in it
// again.
func TestUnusedFileLeavesMemory(t *testing.T) {
	s, err := OpenBolt(t.TempDir(), func() time.Time { return now }, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := with(set(BucketServer, "a", strings.Repeat("x", 1<<20)))
	if err := s.Replace(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), Batch{set(BucketLease, "a", "1")}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was read again leaves again
		got, _ := mustLoad(t, s)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
		if n := resident(t, s.path); n < 1024 {
			t.Fatalf("%d kB while it is read: this test looks at the wrong place", n)
		}
		if err := s.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := resident(t, s.path); n > 128 {
			t.Errorf("%d kB of the file are in memory", n)
		}
	}
}

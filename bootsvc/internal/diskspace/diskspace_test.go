package diskspace

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestFree(t *testing.T) {
	const gib = 1 << 30
	for title, tc := range map[string]struct {
		blocks, available uint64 // of 1 MiB
		keep, want        int64
	}{
		"nothing is kept":                        {100 << 10, 10 << 10, 0, 10 * gib},
		"what is kept is not free":               {100 << 10, 10 << 10, gib, 9 * gib},
		"of a small file system less is kept":    {10 << 10, 1 << 10, gib, gib / 2},
		"others may have taken what was kept":    {100 << 10, 0, gib, -gib},
		"a file system that does not say a size": {0, 0, gib, 0},
	} {
		s := unix.Statfs_t{Blocks: tc.blocks, Bavail: tc.available, Bsize: 1 << 20}
		if got := free(s, tc.keep); got != tc.want {
			t.Errorf("%s: got %d, want %d", title, got, tc.want)
		}
	}
	if got, err := Free(t.TempDir(), 0); got <= 0 || err != nil {
		t.Errorf("here: got %d, %v", got, err)
	}
	if _, err := Free("/nowhere/at/all", 0); err == nil {
		t.Error("a folder that is not there has space")
	}
}

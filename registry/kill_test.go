package registry

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry/internal/killtest"
)

// TestLeasesOutliveAKill kills a process that saves leases, and finds all of which
// it said that they are saved.
func TestLeasesOutliveAKill(t *testing.T) {
	dir := t.TempDir()
	kept := 0
	for range killtest.Rounds {
		acknowledged := killtest.UntilKilled(t, dir, kept)
		r := lead(t, Options{Dir: dir})
		got, err := r.Leases.Leases(t.Context())
		if err != nil || len(got) < acknowledged {
			t.Fatalf("%d leases of %d, %v", len(got), acknowledged, err)
		}
		kept = len(got)
		for i, l := range got {
			if diff := cmp.Diff(leaseOf(i), l, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Fatalf("lease %d (-want +got):\n%s", i, diff)
			}
		}
		if facts := len(r.Observed().EndpointFacts); facts != len(got) {
			t.Errorf("%d devices have %d leases", facts, len(got))
		}
		_ = r.Close()
	}
}

func saveUntilKilled(dir string) error {
	ctx := context.Background()
	r, err := Open(ctx, Options{Dir: dir, SealKey: testSealKey(), Clock: func() time.Time { return now }})
	if err != nil {
		return err
	}
	known, err := r.Leases.Leases(ctx)
	if err != nil {
		return err
	}
	for n := len(known); ; n += 2 {
		if err := r.Leases.SaveLeases(ctx, []model.Lease{leaseOf(n), leaseOf(n + 1)}); err != nil {
			return err
		}
		fmt.Println(n + 2)
	}
}

package registry

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// childDir names the folder where a child of this test saves leases until it is
// killed.
const childDir = "REGISTRY_TEST_CHILD_DIR"

// TestLeasesOutliveAKill kills a process that saves leases, and finds all of which
// it said that they are saved.
func TestLeasesOutliveAKill(t *testing.T) {
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
		r := lead(t, Options{Dir: dir})
		got, err := r.Leases(t.Context())
		if err != nil || len(got) < acknowledged || acknowledged == 0 {
			t.Fatalf("%d leases of %d, %v", len(got), acknowledged, err)
		}
		acknowledged = len(got)
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

// saveUntilKilled saves leases in groups of two, and says how many there are.
func saveUntilKilled(dir string) error {
	ctx := context.Background()
	r, err := Open(ctx, Options{Dir: dir, SealKey: testSealKey(), Clock: func() time.Time { return now }})
	if err != nil {
		return err
	}
	known, err := r.Leases(ctx)
	if err != nil {
		return err
	}
	for n := len(known); ; n += 2 {
		if err := r.SaveLeases(ctx, []model.Lease{leaseOf(n), leaseOf(n + 1)}); err != nil {
			return err
		}
		fmt.Println(n + 2)
	}
}

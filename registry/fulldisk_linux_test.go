package registry

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

const smallDisk = "REGISTRY_TEST_SMALL_DISK"

func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(smallDisk); dir != "" {
		fillDisk(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("FULL DISK NOT TESTED: mounting one takes root")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fillDisk(t *testing.T, dir string) {
	must.Do(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	r := lead(t, Options{Dir: dir})
	var want []model.Lease
	var full error
	for i := 0; full == nil; i += 100 {
		var group []model.Lease
		for n := range 100 {
			group = append(group, leaseWith(i+n, func(l *model.Lease) { l.Role = model.RoleHost }))
		}
		if full = r.Leases.SaveLeases(t.Context(), group); full == nil {
			want = append(want, group...)
		}
	}
	if !errors.Is(full, syscall.ENOSPC) || !errors.Is(full, store.ErrFull) || len(want) < 1000 {
		t.Errorf("%d leases, then %v", len(want), full)
	}
	wantLeases(t, r, want...)
	_ = r.Close()
	r = lead(t, Options{Dir: dir}) // it starts on a full disk too
	wantLeases(t, r, want...)
	must.Do(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=4m"))
	last := leaseWith(1<<20, func(l *model.Lease) { l.Role = model.RoleHost })
	saveLeases(t, r, last)
	wantLeases(t, r, append(want, last)...)
}

package features

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cucumber/godog"
)

func commitLarge(ctx context.Context, file, manifest int64, table *godog.Table) error {
	if err := known(table, "CLAIM", "SERVER"); err != nil {
		return err
	}
	w := siteOf(ctx)
	files := map[string]string{"claims/large.yaml": strings.Repeat("#", int(manifest)<<20)}
	for _, row := range rows(table) {
		if err := w.claim(row); err != nil {
			return err
		}
		files[claimPath(row["CLAIM"])] = w.claimFile(row["CLAIM"])
	}
	_, err := w.repo.CommitZeros("images/disk.raw", file<<20, files, "commit a disk by mistake")
	return err
}

func neverHeld(ctx context.Context, megabytes int) error {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", siteOf(ctx).ingot.command.Process.Pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		peak, ok := strings.CutPrefix(line, "VmHWM:")
		if !ok {
			continue
		}
		kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(peak), " kB"))
		if err != nil || kilobytes > megabytes<<10 {
			return fmt.Errorf("Ingot held%s", strings.TrimRight(peak, "\n"))
		}
		return nil
	}
	return fmt.Errorf("the kernel does not say how much memory Ingot held:\n%s", raw)
}

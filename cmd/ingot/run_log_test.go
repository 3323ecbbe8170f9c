package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ingot/model/must"
)

func TestADaemonWhoseLogNobodyReadsGoesOn(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = []string{"ingot", "run", "--log-level", "debug"}
	cmd.Dir = dir
	ours := func(entry string) bool { return strings.HasPrefix(entry, "INGOT_") }
	cmd.Env = append(slices.DeleteFunc(os.Environ(), ours),
		"INGOT_GIT_URL="+filepath.Join(dir, "none.git"), "INGOT_STATE_DIR="+filepath.Join(dir, "state"),
		"INGOT_BOOT_LISTEN=127.0.0.1:0", "INGOT_REGISTRY_LISTEN=127.0.0.1:0", "INGOT_ADMIN_LISTEN=127.0.0.1:0")
	log := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(log)
	var said []string
	for listens := false; !listens; listens = strings.Contains(lines.Text(), "msg=listening") {
		if !lines.Scan() {
			t.Fatalf("it ended: %v\n%s", cmd.Wait(), strings.Join(said, "\n"))
		}
		said = append(said, lines.Text())
	}
	must.Do(t, log.Close())
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} { // it looks at the repository, and writes that there is none
		must.Do(t, cmd.Process.Signal(s))
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

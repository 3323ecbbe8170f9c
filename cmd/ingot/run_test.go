package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ingot/model/must"
)

func TestTheConfigurationIsThatOfTheWorkingDirectoryUnlessOneIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := configFile(""); got != "" {
		t.Errorf("with no file: %q, want none", got)
	}
	must.Do(t, os.WriteFile("ingot.yaml", nil, 0o600))
	if got := configFile(""); got != "ingot.yaml" {
		t.Errorf("with ingot.yaml: %q", got)
	}
	named := filepath.Join("elsewhere", "a.yaml") // that it is missing, its reader says
	if got := configFile(named); got != named {
		t.Errorf("with another named: %q", got)
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@ingot-" + filepath.Base(t.TempDir()) + t.Name()} {
		socket := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}))(t)
		defer socket.Close()
		if err := notifySystemd(name, "READY=1"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := make([]byte, 64)
		_ = socket.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := socket.Read(got)
		if err != nil || string(got[:n]) != "READY=1" {
			t.Errorf("%s was told %q, %v", name, got[:n], err)
		}
	}
	if err := notifySystemd("", "READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
}

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

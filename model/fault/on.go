//go:build faultpoints

package fault

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

const (
	// logVariable names a file to which each point is appended, one line each.
	logVariable = "INGOT_FAULT_LOG"
	// killVariable is the number of the point, from 1, at which the process kills itself.
	killVariable = "INGOT_FAULT_KILL"
)

var (
	mu    sync.Mutex
	count int
)

// Point counts one point, writes it down, and ends the process with SIGKILL if it is
// the one to be killed at.
func Point(kind string) {
	mu.Lock()
	defer mu.Unlock()
	count++
	if name := os.Getenv(logVariable); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, count, kind)
		_ = f.Close()
	}
	if n, err := strconv.Atoi(os.Getenv(killVariable)); err == nil && n == count {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

package features

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ingot/cmd/daemon/config"
)

// intervals are how often Ingot looks at the repository and writes the status branch.
type intervals struct{ git, status string }

// hurried lets scenarios be short. usual are the defaults: what is written down and
// what is not when Ingot dies depends on them.
var (
	hurried = intervals{git: "200ms", status: "200ms"}
	usual   = intervals{git: defaults.Git.Interval.String(), status: defaults.Status.Interval.String()}
)

var defaults = config.Default()

// usualIntervals has Ingot keep its default intervals. It is told of pushes, as it is
// where people do not want to wait for a minute.
func usualIntervals(ctx context.Context) error {
	w := worldOf(ctx)
	w.intervals = usual
	w.pushed = ring(filepath.Join(w.repo.Dir, "refs/heads", w.branch))
	return nil
}

// bell tells running programs when a branch has moved. A nil bell is silent.
type bell struct {
	stop, stopped chan struct{}

	mu    sync.Mutex
	heard []*program
}

// ring makes a bell of the file that holds a branch's head.
func ring(file string) *bell {
	b := &bell{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(b.stopped)
		last, _ := os.ReadFile(file)
		for {
			select {
			case <-b.stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if now, err := os.ReadFile(file); err == nil && string(now) != string(last) {
				last = now
				b.sound()
			}
		}
	}()
	return b
}

// sound tells all programs that run.
func (b *bell) sound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.heard {
		if p.running() {
			_ = p.command.Process.Signal(syscall.SIGHUP) // or it has just ended
		}
	}
}

// tell has a program that listens already be told from now on.
func (b *bell) tell(p *program) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.heard = append(b.heard, p)
	b.mu.Unlock()
	b.sound() // of what was pushed while it began
}

func (b *bell) end() {
	if b == nil {
		return
	}
	close(b.stop)
	<-b.stopped
}

// mirroring is the setting of status.mirrorFirst, nothing where it is the default.
func (w *world) mirroring() string {
	if w.mirrorLate {
		return ", mirrorFirst: false"
	}
	return ""
}

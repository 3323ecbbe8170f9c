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
// Ingot that is told of pushes looks at once.
type intervals struct {
	git, status string // "" = the default
	poll        string // of a BMC, the same
	told        bool
}

// hurried lets scenarios be short, and starts git seldom: each look of Ingot's is a
// process. alone is for scenarios in which nobody tells Ingot of pushes. usual are the
// defaults: what is written down and what is not when Ingot dies depends on them.
var (
	hurried = intervals{git: "1s", status: "200ms", poll: "1s", told: true}
	alone   = intervals{git: "200ms", status: "200ms", poll: "1s"}
	usual   = intervals{git: defaults.Git.Interval.String(), poll: "1s", told: true}
)

var defaults = config.Default()

// usualIntervals has Ingot keep its default intervals. It is told of pushes, as it is
// where people do not want to wait for a minute.
func usualIntervals(ctx context.Context) error {
	siteOf(ctx).intervals = usual
	return nil
}

func (w *site) tell(p *program) {
	if w.forge != nil && p.where.Webhook != "" {
		w.forge.Announce("http://" + p.where.Webhook + "/webhook")
	}
	if !w.intervals.told {
		return
	}
	if w.pushed == nil {
		w.pushed = ring()
	}
	w.pushed.tell(p, filepath.Join(w.repo.Dir, "refs", "heads", w.branch))
}

// bell tells running programs when a branch has moved. A nil bell is silent.
type bell struct {
	stop, stopped chan struct{}

	mu    sync.Mutex
	file  string // that holds the branch's head
	last  string // what it held
	heard []*program
}

// ring makes a bell that nobody hears yet.
func ring() *bell {
	b := &bell{stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(b.stopped)
		for {
			select {
			case <-b.stop:
				return
			case <-time.After(10 * time.Millisecond):
				b.look()
			}
		}
	}()
	return b
}

func (b *bell) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err := os.ReadFile(b.file)
	if err != nil || string(now) == b.last {
		return
	}
	b.last = string(now)
	for _, p := range b.heard {
		if p.running() {
			_ = p.command.Process.Signal(syscall.SIGHUP) // or it has just ended
		}
	}
}

// tell has a program that listens already be told of moves of a branch from now on, and
// of what was pushed while it began.
func (b *bell) tell(p *program, file string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard, b.file, b.last = append(b.heard, p), file, ""
}

func (b *bell) end() {
	if b == nil {
		return
	}
	close(b.stop)
	<-b.stopped
}

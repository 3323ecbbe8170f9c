package main

import (
	"context"
	"time"
)

// watchFlags are those of commands that go on showing something.
type watchFlags struct {
	Watch    bool          `short:"w" xor:"end" help:"Keep showing it until Ctrl-C: redrawn on a terminal, otherwise only changes. A daemon announces changes. The status branch, and a daemon behind a proxy without event streams, are polled every --interval."`
	Interval time.Duration `default:"2s" placeholder:"TIME" help:"With --watch or --wait: how often to poll where changes are not announced. Default: ${default}."`
}

// minInterval is the shortest that --watch may wait.
const minInterval = 100 * time.Millisecond

// view is a thing that is shown while it changes.
type view struct {
	follow func(context.Context) <-chan change
	look   func(paths []string) error // reads the changed documents, or everything for nil
	show   func(err error, at time.Time)
}

// watch shows a view until ctx is done. The view was read before, with the result err. A view that
// cannot be read is shown as it was, with the error.
func (w watchFlags) watch(ctx context.Context, v view, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := v.follow(ctx)
	if all := changes; all != nil {
		defer func() {
			cancel()
			for range all { // until it has ended
			}
		}()
	}
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	announced := false // the daemon announces changes, and is not polled
	for shown := false; ; {
		if !shown {
			v.show(err, time.Now())
		}
		load, paths := !announced || err != nil, []string(nil)
		shown = false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case c, follows := <-changes:
			if !follows {
				changes, announced, shown = nil, false, true
				continue
			}
			load, announced, paths = c.kind != connectionLost, c.kind != connectionLost, c.paths
			switch c.kind {
			case connectionLost:
				err = errLost
			case daemonRestarted:
				v.show(errRestarted, time.Now())
			case documentsChanged:
			}
		}
		if !load {
			continue
		}
		failed := v.look(paths)
		if ctx.Err() != nil {
			return
		}
		err = failed
	}
}

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

// watch looks and shows what it sees until ctx is done. Look fails if it sees nothing; show is
// given why, and shows what was seen before.
func (w watchFlags) watch(ctx context.Context, follow func(context.Context) <-chan news, look func() error, show func(err error, at time.Time)) error {
	if err := look(); err != nil {
		return err // what never was there is a mistake
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := follow(ctx)
	if all := heard; all != nil {
		defer func() {
			cancel()
			for range all { // until it has ended
			}
		}()
	}
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	var err error
	told := false // of changes, so that nobody need ask
	for shown := false; ; {
		if !shown {
			show(err, time.Now())
		}
		ask := !told
		shown = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case n, follows := <-heard:
			if ask = true; !follows {
				heard, told, shown = nil, false, true
				continue
			}
			told = n != newsLost
			switch n {
			case newsLost:
				err, ask = errLost, false
			case newsRestarted:
				show(errRestarted, time.Now())
			case newsFollowing, newsChanged:
			}
		}
		if !ask {
			continue
		}
		failed := look()
		if ctx.Err() != nil {
			return nil
		}
		err = failed
	}
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"ingot/model"
)

// How often the progress of a wipe is posted: at once when a disk changes its method or
// is done, but at most once in postPause; other changes every postEvery. A large disk takes
// longer than Ingot waits for one percent, and some disks report none at all, so it is posted every
// repostEvery even if there is no change: the wipe goes on.
const (
	postEvery   = 10 * time.Second
	postPause   = time.Second
	repostEvery = time.Minute
)

// maxPostedDisks is how many disks Ingot accepts in a progress.
const maxPostedDisks = 256

// progressURL returns the URL for the progress of a wipe whose outcome is posted to
// reportURL. Its error does not show the URL.
func progressURL(reportURL string) (string, error) {
	u, err := url.Parse(reportURL)
	if err != nil {
		return "", errors.New("the URL of the report cannot be used")
	}
	return u.JoinPath("..", "wipe-progress").String(), nil
}

// progressReporter posts how far a wipe is. The wipe never waits for it.
type progressReporter struct {
	post func(context.Context, []model.DiskProgress) error
	log  *slog.Logger

	urgent chan struct{} // signals a change that is to be posted soon

	mu      sync.Mutex
	now     []model.DiskProgress // nil before anything was received
	changed bool                 // since the last post
	posted  time.Time            // when that was
}

func newProgressReporter(post func(context.Context, []model.DiskProgress) error, log *slog.Logger) *progressReporter {
	return &progressReporter{post: post, log: log, urgent: make(chan struct{}, 1)}
}

func (r *progressReporter) watch(disks []model.DiskProgress, urgent bool) {
	r.mu.Lock()
	r.now, r.changed = disks[:min(len(disks), maxPostedDisks)], true
	r.mu.Unlock()
	if urgent {
		select {
		case r.urgent <- struct{}{}:
		default: // a signal is pending
		}
	}
}

// take returns the progress that is to be posted, nil if there is none.
func (r *progressReporter) take() []model.DiskProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.changed || now.Sub(r.posted) >= repostEvery {
		r.changed, r.posted = false, now
		return r.now
	}
	return nil
}

// run posts until ctx ends. Of consecutive failures only the first is logged: progress
// is worth little once the outcome is posted.
func (r *progressReporter) run(ctx context.Context) {
	tick := time.NewTicker(postEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.urgent:
		case <-tick.C:
		}
		unposted := r.take()
		if unposted == nil {
			continue
		}
		err := r.post(ctx, unposted)
		if err != nil && !failing && ctx.Err() == nil {
			r.log.Warn("progress of the wipe could not be posted", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(postPause):
		}
	}
}

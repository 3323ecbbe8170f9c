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

// How often the progress of a wipe is posted: when disks change their method or
// are done, but not more often than postPause, and else as far as they have come.
const (
	postEvery = 10 * time.Second
	postPause = time.Second
)

// maxPostedDisks is how many disks Ingot takes with a progress.
const maxPostedDisks = 256

// progressURL is where the progress of a wipe goes whose outcome goes to reportURL.
// Its error does not show the address.
func progressURL(reportURL string) (string, error) {
	u, err := url.Parse(reportURL)
	if err != nil {
		return "", errors.New("the address of the report cannot be used")
	}
	return u.JoinPath("..", "wipe-progress").String(), nil
}

// herald posts how far a wipe is. Nothing waits for it.
type herald struct {
	post func(context.Context, []model.DiskProgress) error
	log  *slog.Logger

	turned chan struct{} // something happened that should be known soon

	mu   sync.Mutex
	news []model.DiskProgress // since the last post; nil = none
}

func newHerald(post func(context.Context, []model.DiskProgress) error, log *slog.Logger) *herald {
	return &herald{post: post, log: log, turned: make(chan struct{}, 1)}
}

// watch is a wipe.Watch.
func (h *herald) watch(disks []model.DiskProgress, turn bool) {
	h.mu.Lock()
	h.news = disks[:min(len(disks), maxPostedDisks)]
	h.mu.Unlock()
	if turn {
		select {
		case h.turned <- struct{}{}:
		default: // it is known already
		}
	}
}

// take returns what is new.
func (h *herald) take() []model.DiskProgress {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.news
	h.news = nil
	return news
}

// run posts until ctx ends. Of posts that fail one after the other the first is
// logged: what they say is worth nothing when the outcome is there.
func (h *herald) run(ctx context.Context) {
	tick := time.NewTicker(postEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.turned:
		case <-tick.C:
		}
		news := h.take()
		if news == nil {
			continue
		}
		err := h.post(ctx, news)
		if err != nil && !failing && ctx.Err() == nil {
			h.log.Warn("progress of the wipe is not posted", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(postPause):
		}
	}
}

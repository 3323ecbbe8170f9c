package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ingot/model"
)

// How often an install is reported and shown: at once when its stage changes, else at most this
// often.
const (
	postEvery = 5 * time.Second
	logEvery  = 10 * time.Second
)

// maxWait is the longest pause between two attempts to report what has to be accepted.
const maxWait = time.Minute

// Post sends a report to the daemon.
type Post func(context.Context, model.ProbeInstall) error

// reporter tells the daemon, and people at the console, how far an install is.
type reporter struct {
	post Post
	log  *slog.Logger

	urgent chan struct{} // a change that is to be posted at once

	posting sync.Mutex // held while a report is on its way, so that none overtakes another

	mu      sync.Mutex
	state   model.ProbeInstall
	changed bool      // since the last post
	data    uint64    // bytes of the image that are to be written
	began   time.Time // when writing did
	logged  time.Time // when progress was shown last
}

func newReporter(post Post, first model.ProbeInstall, log *slog.Logger) *reporter {
	return &reporter{post: post, log: log, urgent: make(chan struct{}, 1), state: first}
}

// change changes what is reported, and has it posted at once.
func (r *reporter) change(change func(*model.ProbeInstall)) {
	r.mu.Lock()
	change(&r.state)
	r.changed = true
	r.mu.Unlock()
	select {
	case r.urgent <- struct{}{}:
	default: // a signal is pending
	}
}

func (r *reporter) stage(s model.DiskInstallStage) {
	r.log.Info("install", "stage", string(s))
	r.change(func(p *model.ProbeInstall) { p.Stage = s })
}

// warn notes what went wrong and does not end the install.
func (r *reporter) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.log.Warn("install goes on", "warning", text)
	r.change(func(p *model.ProbeInstall) {
		if p.Warning != "" {
			p.Warning += "; "
		}
		p.Warning += text
	})
}

// writing notes that so many bytes are to be written from now on.
func (r *reporter) writing(data uint64) {
	r.mu.Lock()
	r.data, r.began, r.logged = data, time.Now(), time.Now()
	r.mu.Unlock()
	r.stage(model.DiskWriting)
}

// done notes how many bytes are written, and shows it now and then.
func (r *reporter) done(bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Done, r.changed = bytes, true
	now := time.Now()
	if now.Sub(r.logged) < logEvery && bytes < r.data || r.data == 0 {
		return
	}
	r.logged = now
	took := now.Sub(r.began)
	rate := float64(bytes) / max(took.Seconds(), 1e-3)
	left := time.Duration(float64(r.data-min(bytes, r.data)) / max(rate, 1) * float64(time.Second))
	disk := ""
	if r.state.Disk != nil {
		disk = r.state.Disk.Name
	}
	r.log.Info("image is being written", "disk", disk, "percent", bytes*100/r.data,
		"rate", fmt.Sprintf("%.0f MB/s", rate/1e6), "left", left.Round(time.Second))
}

// run posts changes until ctx ends. Of consecutive failures only the first is logged.
func (r *reporter) run(ctx context.Context) {
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
		err := r.send(ctx, false)
		if err != nil && !failing && ctx.Err() == nil {
			r.log.Warn("progress of the install could not be posted", "err", err)
		}
		failing = err != nil
	}
}

// send posts what is to be reported now, if it has changed or must be posted.
func (r *reporter) send(ctx context.Context, must bool) error {
	r.posting.Lock()
	defer r.posting.Unlock()
	r.mu.Lock()
	state, changed := r.state, r.changed
	r.changed = false
	r.mu.Unlock()
	if !changed && !must {
		return nil
	}
	return r.post(ctx, state)
}

// accepted posts what is to be reported now until the daemon accepts it, with growing pauses:
// a machine that went on without would be installed again.
func (r *reporter) accepted(ctx context.Context) error {
	for wait := firstPause; ; wait = min(2*wait, maxWait) {
		err := r.send(ctx, true)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.log.Warn("install could not be reported yet", "retryIn", wait, "err", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// Failure is why an install ended, as it is reported: for people.
type Failure struct {
	Reason  model.Reason
	Message string
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func failure(reason model.Reason, format string, args ...any) error {
	return &Failure{reason, fmt.Sprintf(format, args...)}
}

func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{model.ReasonInstallFailed, err.Error()}
}

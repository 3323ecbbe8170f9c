package reconcile

import (
	"context"
	"log/slog"
	"time"

	"ingot/model"
)

// Sink takes reports to the status branch and returns the commit that shows
// them, "" if there was nothing to change.
type Sink interface {
	Publish(ctx context.Context, r *model.Report) (commit string, err error)
}

// Publisher keeps the status branch in step with the loop: one commit a batch of
// changes, at most one an interval, none without a change.
type Publisher struct {
	Loop     *Loop
	Sink     Sink
	Fence    func() uint64
	Interval time.Duration
	Log      *slog.Logger
}

// publishRetry is the pause after a failure; it grows up to publishRetryMax.
const (
	publishRetry    = 2 * time.Second
	publishRetryMax = 5 * time.Minute
)

// Run publishes until ctx ends, and then once more what is not published yet.
func (p *Publisher) Run(ctx context.Context) error {
	projector := NewProjector()
	var last time.Time // of the last commit
	failures, dirty := 0, false
	for {
		if !dirty {
			select {
			case <-ctx.Done():
				return nil
			case <-p.Loop.dirty:
				dirty = true
			}
		}
		since := p.Loop.Clock()
		if !sleep(ctx, last.Add(p.Interval).Sub(since)) {
			return p.farewell(ctx, projector)
		}
		drain(p.Loop.dirty)
		committed, err := p.once(ctx, projector)
		switch {
		case ctx.Err() != nil:
			return p.farewell(ctx, projector)
		case err != nil:
			failures++
			p.Loop.Metrics.published("error", 0)
			p.Log.Error("status not published, it is tried again", "attempt", failures, "err", err)
			if !sleep(ctx, min(publishRetry<<min(failures-1, 10), publishRetryMax)) {
				return nil
			}
		default:
			failures, dirty = 0, false
			if committed {
				last = p.Loop.Clock()
				p.Loop.Metrics.published("success", last.Sub(since))
			}
		}
	}
}

// farewell publishes what became known last, with a deadline of its own.
func (p *Publisher) farewell(ctx context.Context, projector *Projector) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := p.once(ctx, projector); err != nil {
		p.Log.Warn("last status not published", "err", err)
	}
	return nil
}

// once publishes the present state and reports whether that made a commit.
func (p *Publisher) once(ctx context.Context, projector *Projector) (bool, error) {
	in := p.Loop.Input(p.Loop.Clock())
	if in == nil {
		return false, nil
	}
	commit, err := p.Sink.Publish(ctx, projector.Report(in, p.Fence()))
	if err != nil {
		return false, err
	}
	projector.Published()
	p.Loop.Mirrored(in)
	if commit != "" {
		p.Log.Info("status published", "commit", commit, "revision", in.Desired.Revision)
	}
	return commit != "", nil
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile"
)

// Publish implements reconcile.Sink.
func (l *leader) Publish(ctx context.Context, r *model.Report) (reconcile.Publication, error) {
	marks, own := l.registry.Observed().Marks, *r
	own.Mark.Line, own.Mark.Deployment, own.Mark.Process, own.Continues = marks.Line, marks.Deployment, l.holder.ID, marks.Continues
	p, err := l.status.Publish(ctx, &own)
	switch {
	case errors.Is(err, errMoved):
		return reconcile.Publication{}, err
	case errors.Is(err, reconcile.ErrFenced):
		l.registry.Lead.End() // before the next request to a BMC
		return reconcile.Publication{}, err
	case err != nil:
		if gitsource.Refused(err) {
			err = refused{err}
		}
		if after, ok := gitsource.RetryAfter(err); ok {
			err = &later{err, after}
		}
		return reconcile.Publication{}, err
	}
	l.seen()
	if p.Foreign != nil {
		l.log.Warn("foreign commit on the status branch overwritten", "author", p.Foreign.Author, "commit", p.Foreign.Commit)
	}
	done := reconcile.Publication{Head: p.Commit, Mark: p.Mark, Committed: p.New, Incomplete: p.Bare}
	for path := range p.Skipped {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(path, ".yaml"), "servers/"); ok {
			done.Skipped = append(done.Skipped, model.ServerName(name))
		}
	}
	return done, nil
}

// refused is an error of a server that takes no push until somebody changes something.
type refused struct{ error }

func (e refused) Is(target error) bool { return target == reconcile.ErrRefused }
func (e refused) Unwrap() error        { return e.error }

// later is an error of a server that said when to try again.
type later struct {
	error
	after time.Duration
}

func (e *later) RetryAfter() time.Duration { return e.after }
func (e *later) Unwrap() error             { return e.error }

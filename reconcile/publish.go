package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

// ErrFenced is what a Sink returns once somebody with a newer fencing number has
// written the status branch: this Ingot's lead is over.
var ErrFenced = errors.New("a newer Ingot writes the status branch")

// ErrRefused is what a Sink returns when the server takes no push until somebody changes
// something there: a protected branch, a token without the right, a scanner for secrets.
var ErrRefused = errors.New("the server refuses the status branch")

// Postponed is an error of a Sink whose server wants no push for a while.
type Postponed interface {
	error
	RetryAfter() time.Duration
}

// Sink takes reports to the status branch.
type Sink interface {
	Publish(ctx context.Context, r *model.Report) (Publication, error)
}

// Publication is what became of a report.
type Publication struct {
	Head      string // the commit that shows it
	Committed bool   // it is new
	// Mark identifies the decisions that the branch shows.
	Mark model.Mark
	// Skipped are the servers whose record it does not show.
	Skipped []model.ServerName
	// Incomplete is set when free text was left out, which is to be published later.
	Incomplete bool
	// Hurried is set when what could wait was left out, to be published in its turn.
	Hurried bool
}

// againAfter is after how long a report is published again without a change: of one from which
// something was left out that may be told now, and of any other the branch may have been
// deleted or set back.
const againAfter = 5 * time.Minute

// Publisher keeps the status branch in step with the store: one commit a batch of
// changes, at once when a decision waits for it, else at most one an interval, none
// without a change.
type Publisher struct {
	Reporter *Reporter
	Sink     Sink
	// Note saves in the store what the branch shows; nil = it is not saved.
	Note     func(context.Context, model.Mark) error
	Interval time.Duration
	// Unlimited pushes as often as there is something to publish, for tests and the demo.
	Unlimited bool
	Log       *slog.Logger

	limiter *PushLimiter
	stopped bool       // nothing more is decided
	mu      sync.Mutex // guards what is below
	since   time.Time  // since when the branch cannot be pushed; zero = it can
	err     error

	began atomic.Pointer[time.Time] // when the push under way began; nil = none is
}

// publishPriority says when a publication contains decisions only.
type publishPriority int

const (
	publishAll            publishPriority = iota
	publishDecisionsFirst                 // where the report has a decision that waits for it
	publishDecisions
)

// leftOut is what publications left out because it can wait.
type leftOut struct {
	since time.Time // zero = there is nothing
	late  bool      // the last publication left it out once more, though its time had come
}

// priority is the priority of a publication at now. Other changes wait for an interval, however
// many decisions follow one another. If a decision waits at its end, they wait for one more publication.
func (l leftOut) priority(now time.Time, interval time.Duration, urgent bool) publishPriority {
	switch due := !l.since.IsZero() && now.Sub(l.since) >= interval; {
	case due && (l.late || !urgent):
		return publishAll
	case urgent:
		return publishDecisions
	}
	return publishDecisionsFirst
}

func (l leftOut) after(now time.Time, interval time.Duration, hurried bool) leftOut {
	if !hurried {
		return leftOut{}
	}
	if l.since.IsZero() {
		l.since = now
	}
	l.late = now.Sub(l.since) >= interval
	return l
}

// The pauses after a failure: they grow from the shortest to the longest, which is shorter
// while something waits for the push.
const (
	publishRetry          = 2 * time.Second
	publishRetryUrgentMax = 30 * time.Second
	publishRetryMax       = 5 * time.Minute
)

// slowPush is how long a push may take before it counts as failing: its host may hang until it times out.
const slowPush = publishRetryUrgentMax

// Failing returns since when the status branch cannot be pushed, and why; zero and nil
// when it can.
func (p *Publisher) Failing() (since time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began := p.began.Load(); p.err == nil && began != nil {
		if silent := p.Reporter.Loop.Clock().Sub(*began); silent >= slowPush {
			return *began, fmt.Errorf("no answer for %.0f s", silent.Seconds())
		}
	}
	return p.since, p.err
}

func (p *Publisher) note(since time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.err = since, err
}

// Run publishes until ctx ends, and then once more what is not published yet. It fails
// with ErrFenced alone.
func (p *Publisher) Run(ctx context.Context) error {
	p.limiter = NewPushLimiter()
	var story report.Story
	var last, again time.Time // of the last commit, and when the next is published without a change
	var out leftOut
	var lastError logLimiter
	failures, dirty, urgent := 0, false, false
	for {
		now := p.Reporter.Loop.Clock()
		due := again // there is nothing new
		if dirty || urgent {
			due = p.due(now, last, failures, urgent || out.late)
		}
		switch p.wait(ctx, due, dirty, urgent) {
		case ended:
			return p.farewell(ctx, &story)
		case becameDirty:
			dirty = true
			continue
		case becameUrgent:
			urgent = true
			continue
		case isDue:
		}
		drain(p.Reporter.Loop.dirty)
		urgent = drain(p.Reporter.Loop.urgent) || urgent
		done, err := p.unhurried(ctx, &story, out.priority(now, p.Interval, urgent))
		switch {
		case errors.Is(err, ErrFenced):
			return err
		case ctx.Err() != nil:
			return p.farewell(ctx, &story)
		case err != nil:
			failures, dirty = failures+1, true
			p.note(p.Reporter.Loop.Unannounced(p.Reporter.Loop.Clock()), err)
			p.Reporter.Loop.Metrics.unpublished()
			lastError.log(p.Log, p.Reporter.Loop.Clock(), failures, err)
		default:
			lastError.text = ""
			failures, dirty, urgent = 0, done.Hurried, false
			out = out.after(now, p.Interval, done.Hurried)
			p.note(time.Time{}, nil)
			pushed := p.Reporter.Loop.Clock()
			again = pushed.Add(againAfter)
			p.Reporter.Loop.Metrics.published(done.Committed, pushed.Sub(now))
			if done.Committed {
				last = pushed
			}
		}
	}
}

// logLimiter knows what was logged last of a branch that cannot be pushed.
type logLimiter struct {
	text string // of an error, or that it is a refusal, whose words may differ each time
	at   time.Time
}

// logAgainAfter is how often the same is said again: a branch that is protected stays so
// until somebody comes.
const logAgainAfter = time.Hour

// log logs why the branch cannot be pushed, the same once an hour.
func (l *logLimiter) log(to *slog.Logger, now time.Time, attempt int, err error) {
	level, text := slog.LevelDebug, err.Error()
	if errors.Is(err, ErrRefused) {
		text = ErrRefused.Error()
	}
	if text != l.text || now.Sub(l.at) >= logAgainAfter {
		level, l.text, l.at = slog.LevelError, text, now
	}
	to.Log(context.Background(), level, "status not published, it is tried again", "attempt", attempt, "err", err)
}

// due is when to publish next, after a number of failures in a row.
func (p *Publisher) due(now, last time.Time, failures int, urgent bool) time.Time {
	due := now
	later := func(t time.Time) {
		if t.After(due) {
			due = t
		}
	}
	if !p.Unlimited {
		later(p.limiter.Next(now, urgent))
	}
	switch {
	case failures > 0:
		later(now.Add(p.pause(failures, urgent)))
	case !urgent:
		later(last.Add(p.Interval))
	}
	return due
}

type moment int

const (
	isDue moment = iota
	becameDirty
	becameUrgent
	ended
)

// wait waits until due, for ever if that is zero, or until there is more to publish.
func (p *Publisher) wait(ctx context.Context, due time.Time, dirty, urgent bool) moment {
	var timer <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(max(due.Sub(p.Reporter.Loop.Clock()), 0))
		defer t.Stop()
		timer = t.C
	}
	news, hurry := p.Reporter.Loop.dirty, p.Reporter.Loop.urgent
	if dirty || urgent {
		news = nil
	}
	if urgent {
		hurry = nil
	}
	select {
	case <-ctx.Done():
		return ended
	case <-news:
		return becameDirty
	case <-hurry:
		return becameUrgent
	case <-timer:
		return isDue
	}
}

// pause is how long to wait after a number of failures in a row. A server that refuses the
// branch is not asked sooner because something waits for it.
func (p *Publisher) pause(failures int, urgent bool) time.Duration {
	longest := publishRetryMax
	if _, err := p.Failing(); urgent && !errors.Is(err, ErrRefused) {
		longest = publishRetryUrgentMax
	}
	return min(publishRetry<<min(failures-1, 10), longest)
}

// lastMoves is how long the last push waits for the moves under way once Ingot is to stop:
// their requests are cut off, and a push must be made while the lead lasts.
const lastMoves = 5 * time.Second

// farewell publishes the last changes, with the results of the last moves, and that nothing more
// was decided. It has a deadline of its own.
func (p *Publisher) farewell(ctx context.Context, story *report.Story) error {
	if ended := p.Reporter.Loop.snapshots.ended(); ended != nil {
		select {
		case <-ended:
			p.stopped = true
		case <-time.After(lastMoves):
		}
	}
	if _, err := p.unhurried(ctx, story, publishAll); err != nil {
		p.Log.Warn("last status not published", "err", err)
	}
	return nil
}

// lastPush is how long a push may go on once Ingot is to stop.
const lastPush = 10 * time.Second

// unhurried is once, but goes on for a while when ctx ends: a push that is cut off may leave
// the branch locked in a repository on this machine.
func (p *Publisher) unhurried(ctx context.Context, story *report.Story, priority publishPriority) (Publication, error) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastPush, cancel) })
	defer stop()
	return p.once(longer, story, priority)
}

// once publishes what is so now and returns what became of it.
func (p *Publisher) once(ctx context.Context, story *report.Story, priority publishPriority) (Publication, error) {
	loop := p.Reporter.Loop
	r := p.Reporter.Report()
	if r == nil {
		return Publication{}, nil
	}
	if r.Fence == 0 {
		return Publication{}, fmt.Errorf("%w: this Ingot does not lead any more", ErrFenced)
	}
	if loop.Leading != nil && !loop.Leading() {
		return Publication{}, errors.New("the store does not say whether this Ingot still leads")
	}
	own := *r.Report // for its subject
	own.Clean = p.stopped && sameRecords(&r.Input.Observed.Records, &loop.Store.Observed().Records)
	hurries := priority == publishDecisions || priority == publishDecisionsFirst && loop.decided(r.Result)
	hurried := hurries && story.Hurry(&own) > 0
	story.Describe(r.Input.Desired, r.Result, &own)
	began := loop.Clock()
	p.began.Store(&began)
	done, err := p.Sink.Publish(ctx, &own)
	p.began.Store(nil)
	if err != nil {
		p.limiter.Pushed(loop.Clock())
		if later, ok := errors.AsType[Postponed](err); ok {
			p.limiter.Postpone(loop.Clock(), later.RetryAfter())
		}
		return Publication{}, err
	}
	done.Hurried = hurried
	story.Published(r.Result, &own)
	if done.Committed {
		p.limiter.Pushed(loop.Clock())
		p.Log.Info("status published", "commit", done.Head, "revision", r.Revision)
	}
	if p.Note != nil {
		if err := p.Note(ctx, done.Mark); err != nil {
			return done, fmt.Errorf("note what the status branch shows: %w", err)
		}
	}
	loop.Announced(intents(r.Input.Observed.Servers, done.Skipped))
	return done, nil
}

// sameRecords reports whether nothing was decided from one snapshot of the store to another.
func sameRecords(a, b *model.Records) bool {
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	return same(a.Servers, b.Servers) && same(a.BMCs, b.BMCs) && same(a.Claims, b.Claims) && same(a.Endpoints, b.Endpoints) &&
		reflect.DeepEqual(a.Fleet, b.Fleet)
}

// intents are those of all servers except the skipped ones.
func intents(servers map[model.ServerName]*model.ServerRecord, skipped []model.ServerName) map[model.ServerName]model.Intent {
	shown := make(map[model.ServerName]model.Intent)
	for name, rec := range servers {
		if rec.Intent != nil && !slices.Contains(skipped, name) {
			shown[name] = *rec.Intent
		}
	}
	return shown
}

// drain takes the signal that is in a channel, and reports whether there was one.
func drain(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

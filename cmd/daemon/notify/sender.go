package notify

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/reconcile/report"
)

// The formats in which a webhook is told.
const (
	FormatCloudEvents = "cloudevents"
	FormatSlack       = "slack"
)

// Formats are the formats that there are.
func Formats() []string { return []string{FormatCloudEvents, FormatSlack} }

// maxStanding bounds the notices that are looked at. Of more, those that matter least are
// told of once there is room.
const maxStanding = 20_000

// Options are the options of New.
type Options struct {
	Webhooks []Webhook
	// Title names the fleet in what people read; Source is what CloudEvents come from.
	Title, Source string
	Policy        report.NoticePolicy
	// Dir is where it is remembered what was told.
	Dir string
	// Report is what is so now, nil while that is not known.
	Report func() *model.Report
	// Leading reports whether this process acts, Fence its number; another one tells nothing.
	Leading func() bool
	Fence   func() uint64
	// Link is the page of an object, "" for none; nil = there are none.
	Link func(object, name string) string

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
	// Fast shortens every wait, for tests.
	Fast bool
}

// Sender tells webhooks of what stands.
type Sender struct {
	opts     Options
	targets  []*target
	standing atomic.Pointer[[]report.Notice] // nil = not known, or not ours to tell
}

// New returns a Sender, which sends nothing before Run.
func New(o Options) *Sender {
	s := &Sender{opts: o}
	counts := newMetrics(o.Registerer)
	for _, w := range o.Webhooks {
		s.targets = append(s.targets, newTarget(w, &s.opts, counts.of(w.Name), filepath.Join(o.Dir, w.Name+".json")))
	}
	return s
}

// Run sends until ctx ends. It returns nil then.
func (s *Sender) Run(ctx context.Context) error {
	pace := paceOf(s.opts.Fast)
	var workers sync.WaitGroup
	defer workers.Wait()
	for _, t := range s.targets {
		workers.Go(func() { every(ctx, pace.step, func() { t.step(ctx, s.standing.Load()) }) })
	}
	every(ctx, pace.look, s.look)
	return nil
}

// every does something again and again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// look notes what stands.
func (s *Sender) look() {
	if !s.opts.Leading() {
		s.standing.Store(nil)
		return
	}
	r := s.opts.Report()
	if r == nil {
		return
	}
	all := report.NoticesOf(r, s.opts.Policy, s.opts.Clock())
	all = all[:min(len(all), maxStanding)]
	s.standing.Store(&all)
}

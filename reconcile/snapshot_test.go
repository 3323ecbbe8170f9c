package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

func (w *loopWorld) reporter() *Reporter {
	return &Reporter{Loop: w.loop, Fence: func() uint64 { return 1 }}
}

// objects are what a report's documents say, but for texts and what has no object.
func objects(r *model.Report) map[string]any {
	all := make(map[string]any)
	for path, d := range r.Documents {
		if d.Object != nil {
			all[path] = d.Object
		}
	}
	return all
}

// shownAsStored compares what is shown with what a plan of what is stored says.
func (h *history) shownAsStored() {
	in, _ := h.w.loop.stored(time.Now())
	want := objects(reportBy(new(report.Projector), in))
	r := h.w.reporter().Report()
	if h.w.loop.Snapshot() == nil {
		h.fail("there is no snapshot though the loop runs")
	}
	if diff := cmp.Diff(want, objects(r.Report), cmpopts.IgnoreUnexported(report.Document{})); diff != "" {
		h.fail("what is shown is not what is so (-so +shown):\n%s", diff)
	}
}

func TestWhatIsShownIsWhatAPlanOfTheStoreSays(t *testing.T) {
	for seed := range fleettest.Histories(6, 20) {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(newLoopWorld(t, 4), seed, 7)
			h.w.holds.Store(0) // they differ from one plan to the next
			h.w.start()
			for range 60 {
				h.event()
				pass(time.Duration(h.rnd.IntN(90)) * time.Second)
				h.w.untilPlanned()
				h.shownAsStored()
			}
			h.w.stop()
		})
	}
}

// tardy is a world in which something is saved while a plan looks at it.
type tardy struct {
	*loopWorld
	meanwhile func()
}

func (s *tardy) Observed() *model.Observed {
	o := s.loopWorld.Observed()
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	return o
}

// told reports whether the publisher is told to look, and which model of BMC "other" it
// would show.
func told(l *Loop) (is bool, shown string) {
	is = len(l.dirty) > 0
	drain(l.dirty)
	if s := l.Snapshot(); s != nil && s.In.Observed.BMCFacts["other"] != nil {
		shown = s.In.Observed.BMCFacts["other"].Model
	}
	return is, shown
}

func TestThePublisherIsToldOnlyOnceASnapshotShowsTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tardy{loopWorld: newLoopWorld(t, 0)}
		l := NewLoop(Options{Desired: s.Desired, DesiredChanged: s.changed, Store: s, BMCs: s, Boots: s, Policy: s.policy()})
		step := func() {
			if _, err := l.Step(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		save := func(m string) {
			changes := proposal.Changes{BMCFacts: []*model.BMCFacts{{Name: "other", Model: m}}}
			if err := l.save(t.Context(), changes, "bmc", "other"); err != nil {
				t.Error(err)
			}
		}
		step()
		step()
		drain(l.dirty)
		save("one")
		if is, _ := told(l); is {
			t.Error("it is told of what no snapshot shows yet")
		}
		s.meanwhile = func() { save("two") }
		step()
		if is, shown := told(l); !is || shown != "one" {
			t.Errorf("it is told %t of %q, want it told of what was saved before the plan", is, shown)
		}
		step()
		if is, shown := told(l); !is || shown != "two" {
			t.Errorf("it is told %t of %q, want it told of what was saved during the plan before", is, shown)
		}
	})
}

func TestTheFleetIsShownWhereTheLoopDoesNotPlan(t *testing.T) {
	tests := map[string]func(w *loopWorld){
		"on standby, the loop never ran": func(w *loopWorld) {
			w.loop = NewLoop(w.loop.Options)
		},
		"the loop has ended": func(*loopWorld) {},
		"it runs, and does not lead any more": func(w *loopWorld) {
			w.start()
			pass(time.Minute)
			w.deposed.Store(true)
			w.loop.Wake()
		},
		"its plan hangs in the store": func(w *loopWorld) {
			l := NewLoop(w.loop.Options)
			l.snapshots.keep(&Snapshot{In: &world.Input{Desired: w.Desired(), Observed: model.NewObserved()}}, time.Now())
			w.loop = l
		},
	}
	for name, begin := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				w.start()
				w.expect(time.Minute, 0, "Available Off")
				w.stop()
				begin(w)
				pass(lateAfter + time.Second)
				saves, before := w.saves, w.seen(0)
				w.mu.Lock()
				rec := *w.observed.Servers["bmc00-system-0"]
				rec.Life.State = model.StateMaintenance
				w.observed.Servers[rec.Name] = &rec
				w.mu.Unlock()
				r := w.reporter().Report()
				if got := r.ServerStatus("bmc00-system-0").State; got != model.StateMaintenance {
					t.Errorf("the server is shown %q, want it shown as it is stored", got)
				}
				if got := shownMetrics(w.reporter()); got == 0 {
					t.Error("there are no metrics")
				}
				if after := w.seen(0); w.saves != saves || after.sets+after.ons+after.offs != before.sets+before.ons+before.offs {
					t.Error("something was carried out")
				}
				w.stop()
			})
		})
	}
}

// shownMetrics is how many metrics a reporter's fleet has.
func shownMetrics(r *Reporter) (n int) {
	ch := make(chan prometheus.Metric)
	go func() {
		NewFleetCollector(r.Report, true).Collect(ch)
		close(ch)
	}()
	for range ch {
		n++
	}
	return n
}

// settingNow is how many boot overrides are being set.
func (w *loopWorld) settingNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.setting
}

// lingering is a world whose BMCs take long to answer power requests.
type lingering struct {
	*loopWorld
	asked chan struct{}
}

func (s lingering) Reset(ctx context.Context, t model.SystemTarget, r model.ResetKind, from model.Power) (model.ResetResult, error) {
	signal(s.asked)
	time.Sleep(3 * time.Second)
	return s.loopWorld.Reset(ctx, t, r, from)
}

func TestTheLastCommitShowsTheLastMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := newLoopWorld(t, 1), &branch{t: t}
		s := lingering{w, make(chan struct{}, 1)}
		l := NewLoop(Options{Desired: w.Desired, DesiredChanged: w.changed, Store: w, BMCs: s, Boots: w, Policy: w.policy()})
		ctx, cancel := context.WithCancel(t.Context())
		p := &Publisher{
			Reporter: &Reporter{Loop: l, Fence: func() uint64 { return 1 }},
			Sink:     b, Interval: time.Hour, Log: slog.New(slog.DiscardHandler),
		}
		ran, done := make(chan error, 1), make(chan error, 1)
		go func() { ran <- l.Run(ctx, 2*time.Minute) }()
		go func() { done <- p.Run(ctx) }()
		<-s.asked
		cancel()
		for _, ended := range []chan error{ran, done} {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		want := string(w.Observed().Servers["bmc00-system-0"].Life.State)
		file := string(b.files["servers/bmc00-system-0.yaml"])
		if want != "Discovery" || !strings.Contains(file, "\n  state: Discovery\n") {
			t.Errorf("the server is %s, and the last commit shows\n%s", want, file)
		}
	})
}

func TestAMoveUnderWayIsNotShownAsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.slow = 10 * time.Second
		w.start()
		for w.settingNow() == 0 {
			pass(100 * time.Millisecond)
		}
		pass(time.Second)
		if got := w.loop.Input(time.Now()).Observed.Servers["bmc00-system-0"].Life.State; got != model.StateDiscovery {
			t.Fatalf("it is planned for as %s, want it as its move will leave it", got)
		}
		r := w.reporter()
		one := r.Report()
		if got := one.ServerStatus("bmc00-system-0").State; got != model.StateInitial {
			t.Errorf("it is shown as %s, want it as it is stored", got)
		}
		if r.Report() != one {
			t.Error("the same snapshot is reported twice")
		}
		w.stop()
	})
}

func TestAScrapeOfAnIdleFleetMakesNothing(t *testing.T) {
	live(t, 3, func(t *testing.T, w *loopWorld) {
		w.expect(5*time.Minute, 0, "Available Off")
		r := w.reporter()
		one := r.Report()
		if r.Report() != one {
			t.Error("the same snapshot is reported twice")
		}
		pass(10 * time.Minute) // each server is polled many times
		two := r.Report()
		if two == one || two.Result != w.loop.Snapshot().Result {
			t.Error("the report is not of what the loop planned last")
		}
		if !maps.Equal(one.Documents, two.Documents) {
			t.Error("documents were made anew though nothing happened")
		}
	})
}

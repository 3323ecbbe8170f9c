package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/cmd/daemon/holder"
	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
	"ingot/reconcile/truth"
	"ingot/registry"
	"ingot/registry/store"
)

// ErrAnotherIngot is returned by Run when another Ingot that does not share the store
// acts for the same repository.
var ErrAnotherIngot = errors.New("another Ingot acts for this repository")

// leader decides whether this process acts, and with which decisions: those of the status branch and of
// the store. It notes in the store what the branch shows.
type leader struct {
	*core
	choices   string // key of the tokens that choose between store and status branch
	startCase *prometheus.GaugeVec
	marking   sync.Mutex // one change of the store's marks at a time
	healing   func()     // ends the restoring of power before a take-over
	begun     bool       // the source has

	mu          sync.Mutex // guards the fields below
	state       reconcile.State
	serving     time.Time // since when machines can boot from this process
	seenAt      time.Time // when the status branch was last seen to be ours
	observing   bool      // another may act with a copy of the store
	observeFrom time.Time // when it could see a commit of ours; zero = not yet
}

// takeOver makes this process the one that acts, with the decisions that count: those of the
// status branch, and the later ones of the store. Nothing is done to any machine
// before. It waits for as long as the status branch cannot be read.
func (l *leader) takeOver(ctx context.Context) error {
	s, err := l.compared(ctx)
	if err != nil {
		return err
	}
	if err := l.untilStored(ctx, func() error { return l.registry.RaiseFence(ctx, s.head.Fence) }); err != nil {
		return fmt.Errorf("take a fencing number above %d, which the status branch shows: %w", s.head.Fence, err)
	}
	before := l.registry.Observed().Fleet.Applied
	if err := l.adopt(ctx, s); err != nil {
		return err
	}
	if l.begun && l.registry.Observed().Fleet.Applied != before {
		return errors.New("the status branch knows another revision than the one that this process has applied: start it again")
	}
	l.begin()
	l.sighted()
	l.setState(reconcile.State{LongGap: s.longGap(l.clock())})
	return nil
}

type start struct {
	store   truth.Store
	head    truth.Head
	branch  report.BranchRecords
	verdict truth.Verdict
	same    bool // the head is of this store, or of a copy of it
	chosen  bool
}

// compared reads the status branch and decides where the decisions are. Where that is up to a person
// it waits for the choice.
func (l *leader) compared(ctx context.Context) (start, error) {
	for {
		s, err := l.look(ctx)
		if err != nil {
			return s, err
		}
		l.log.Log(ctx, s.level(), "store and status branch were compared", "case", string(s.verdict.Case), "from", string(s.verdict.From),
			"store", s.store.Base.Sequence, "head", s.head.Sequence, "process", s.head.Process)
		l.startCase.WithLabelValues(string(s.verdict.Case)).Set(1)
		switch {
		case s.verdict.Refuse:
			return s, fmt.Errorf("%w: the one on host %s wrote the status branch last, and may be running. Stop it, or give both the same Redis; "+
				"if you are certain that it has stopped, start this one with --take-over=%s", ErrAnotherIngot, s.head.Writer.Host, s.head.Process)
		case !s.verdict.Choose:
			return s, nil
		}
		if chosen, err := l.choose(ctx, s); err != nil || chosen.chosen {
			return chosen, err
		}
		l.startCase.Reset()
	}
}

func (l *leader) look(ctx context.Context) (s start, err error) {
	snapshot, err := l.readBranch(ctx)
	if err != nil {
		return s, err
	}
	s.branch = l.branchRecords(snapshot)
	s.head.BranchHead = snapshot.Newest
	s.head.Intact = s.head.Intact && len(s.branch.Unreadable) == 0
	observed := l.registry.Observed()
	marks := observed.Marks
	s.store = truth.Store{Marks: marks, Last: observed.Sequence, Whole: len(l.registry.Damage()) == 0 && !marks.Ended}
	s.same = s.head.Kind == model.HeadOurs && s.head.Deployment == marks.Deployment
	shared := s.same && l.opts.Redis.URL != "" // one of those that share it leads, and that is this one
	s.head.MayLive = s.head.Kind == model.HeadOurs && !shared && holder.MayLive(s.head.Writer, l.holder, s.same)
	s.verdict = truth.Compare(s.store, s.head, l.opts.TakeOver != "" && l.opts.TakeOver == s.head.Process)
	return s, nil
}

func (s start) level() slog.Level {
	if slices.Contains([]truth.Case{truth.NewFleet, truth.UpToDate, truth.HalfPushed, truth.NeverPushed}, s.verdict.Case) {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// longGapAfter is for how long nothing may have shown that a process lived which knew what is known now.
const longGapAfter = 15 * time.Minute

// gap is for how long, by a clock, nothing shows that a process lived which knew what is known now.
func (s start) gap(now time.Time) time.Duration {
	last := s.store.Alive
	if s.head.At.After(last) {
		last = s.head.At
	}
	return now.Sub(last)
}

// withWindow has the records that are adopted, nil if those of the store count, keep the guard's window as full as it was.
// Only the clock of this start says how long no process lived, and it may be ahead.
func (s start) withWindow(records *model.Records, fleet model.FleetRecord, now time.Time) *model.Records {
	if records != nil {
		fleet = records.Fleet
	}
	gap := s.gap(now)
	if gap <= aliveEvery || len(fleet.Done) == 0 {
		return records
	}
	fleet.Done = slices.Clone(fleet.Done)
	for i := range fleet.Done {
		fleet.Done[i].At = fleet.Done[i].At.Add(gap)
	}
	if records == nil {
		return &model.Records{Fleet: fleet}
	}
	kept := *records
	kept.Fleet = fleet
	return &kept
}

// longGap reports whether decisions that are newer than all that is known may be lost: store and status
// branch may both be backups.
func (s start) longGap(now time.Time) bool {
	return s.verdict.Case != truth.NewFleet && !s.head.Clean && s.gap(now) > longGapAfter
}

// observes reports whether another process that has a copy of the store may live, and has to see
// this one's first commit before this one acts.
func (s start) observes(shared bool) bool {
	c := s.verdict.Case
	return s.head.MayLive || !shared && (c == truth.BranchLost || c == truth.BranchReset)
}

// choose waits until a commit chooses between store and status branch. If they have changed
// meanwhile there is another choice.
func (l *leader) choose(ctx context.Context, s start) (start, error) {
	token := func(from truth.From) string {
		return proposal.Token(l.choices, fmt.Sprintf("%s %s %+v %+v", s.verdict.Case, from, s.store.Base, s.head.Mark), proposal.TokenLength)
	}
	store, head := token(truth.FromStore), token(truth.FromHead)
	var choices []string
	if s.store.Last > 0 {
		choices = append(choices, fmt.Sprintf("%s for the store (sequence %d)", proposal.ApproveLine(store), s.store.Last))
	}
	if s.head.Kind == model.HeadOurs {
		choices = append(choices, fmt.Sprintf("%s for the status branch (sequence %d, written by %s)", proposal.ApproveLine(head), s.head.Sequence, s.head.Process))
	}
	text := fmt.Sprintf("it is not certain what was decided last (%s), so a commit has to choose what counts for the whole fleet, by the last line of its message: %s",
		s.verdict.Case, strings.Join(choices, ", or "))
	l.log.Error("nothing is done until a person chooses", "why", text)
	defer l.stopHealing()
	l.restorePower(ctx, text, s.verdict.Case != truth.AnotherFleet)
	for sleep(ctx, min(time.Second, l.opts.Git.Interval)) == nil {
		approvals := l.source.Offered()
		if desired := l.desired(); desired != nil { // the source has begun before
			approvals = append(slices.Clip(approvals), desired.Approvals...)
		}
		for _, approved := range approvals {
			switch {
			case approved == store && s.store.Last > 0:
				s.verdict.From = truth.FromStore
			case approved == head && s.head.Kind == model.HeadOurs:
				s.verdict.From, s.verdict.Recover = truth.FromHead, true
			default:
				continue
			}
			again, err := l.look(ctx)
			if err != nil || again.head.Mark != s.head.Mark || again.verdict.Case != s.verdict.Case {
				return again, err
			}
			again.verdict, again.chosen = s.verdict, true
			return again, nil
		}
	}
	return s, ctx.Err()
}

// adopt writes the records that count into the store, and the marks with which they do.
func (l *leader) adopt(ctx context.Context, s start) error {
	observed := l.registry.Observed()
	a := truth.Adopt(s.verdict, &observed.Records, &s.branch.Records)
	if unread := l.unreadable(s, observed); len(unread) > 0 {
		if a.Records == nil {
			a.Records = &model.Records{Fleet: observed.Fleet}
		}
		a.Records.Fleet.Unreadable = append(slices.Clip(a.Records.Fleet.Unreadable), unread...)
	}
	a.Records = s.withWindow(a.Records, observed.Fleet, l.clock())
	marks := s.store.Marks
	marks.Continues = truth.Continues(marks, s.head.BranchHead)
	if s.verdict.From == truth.FromHead || s.verdict.Case == truth.HalfPushed || s.verdict.Fill {
		marks.Base, marks.Pushing = s.head.Mark, nil // what else was pushed before is of other documents
	}
	marks.Deployment = orNew(marks.Deployment)
	switch {
	case marks.Base.Line != "":
		marks.Line = marks.Base.Line
	case s.head.Line != "":
		marks.Line = s.head.Line
	}
	marks.Line, marks.Ended, marks.Alive = orNew(marks.Line), false, l.clock()
	if s.observes(l.opts.Redis.URL != "") {
		l.observe()
		if wait := marks.Opened.Add(l.lookInterval()).Sub(l.clock()); wait > 0 { // two copies must not end each other all the time
			if err := sleep(ctx, min(wait, l.lookInterval())); err != nil {
				return err
			}
		}
	}
	return l.untilStored(ctx, func() error { return l.registry.Adopt(ctx, a.Records, a.Only, marks, s.head.Sequence) })
}

// untilStored tries to write to the store until that succeeds, or this process does not lead.
func (l *leader) untilStored(ctx context.Context, write func() error) error {
	for {
		err := write()
		if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, registry.ErrLeadershipLost) {
			return err
		}
		l.log.Error("nothing is done yet", "err", err)
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// unreadable are the servers that are known by their name alone: no copy of their record that
// counts can be read.
func (l *leader) unreadable(s start, o *model.Observed) (all []model.UnreadableRecord) {
	note := func(name model.ServerName) {
		all = append(all, model.UnreadableRecord{
			Server: name, Claim: s.branch.Serves[name], Since: l.clock(), Token: proposal.Token(l.choices, fmt.Sprint("unreadable ", name, s.head.Mark), proposal.TokenLength),
		})
	}
	if s.verdict.From == truth.FromHead {
		for _, path := range s.branch.Unreadable {
			if name, ok := report.ServerAt(path); ok {
				note(name)
			}
		}
		return all
	}
	for _, damage := range l.registry.Damage() {
		name := model.ServerName(damage.Name)
		if damage.Bucket == string(store.BucketServer) && name != "" && o.Servers[name] == nil && s.branch.Servers[name] == nil {
			note(name)
		}
	}
	return all
}

// readBranch reads the status branch, and tries again until it can be read: without it
// it is unknown whether the store has the newest decisions.
func (l *leader) readBranch(ctx context.Context) (gitsource.Snapshot, error) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		snapshot, err := l.status.Read(ctx)
		if err == nil || ctx.Err() != nil {
			l.stopHealing()
			return snapshot, ctx.Err()
		}
		why := fmt.Sprintf("the status branch cannot be read, so it is not known whether the store is up to date: %v", err)
		l.log.Error("nothing is done yet", "err", err)
		l.restorePower(ctx, why, l.opts.Power.RestoreWithoutBranch)
		if err := sleep(ctx, pause); err != nil {
			l.stopHealing()
			return snapshot, err
		}
	}
}

// restoreWithin is for how long after a process lived power is restored by the store alone.
const restoreWithin = 24 * time.Hour

// restorePower powers bound servers on again, from their disks and by the store alone, while it is
// not known what was decided last.
func (l *leader) restorePower(ctx context.Context, why string, may bool) {
	alive := l.registry.Observed().Marks.Alive
	if !may || alive.IsZero() || l.clock().Sub(alive) > restoreWithin {
		l.setState(reconcile.State{ObserveOnly: why})
		return
	}
	l.setState(reconcile.State{HealOnly: why})
	if l.healing != nil {
		return
	}
	l.begin()
	l.registry.KeepSequence(true)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.loop.Run(ctx, planEvery); err != nil {
			l.log.Error("power is not restored", "err", err)
		}
	}()
	l.healing = func() { cancel(); <-done }
}

// stopHealing ends what restorePower began, and waits for it.
func (l *leader) stopHealing() {
	if l.healing != nil {
		l.healing()
		l.registry.KeepSequence(false)
		l.healing = nil
	}
}

// sleep waits for d. It returns an error if ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// branchRecords decodes the status branch. A file that is wrong is logged, and concerns its
// own object only.
func (l *leader) branchRecords(snapshot gitsource.Snapshot) report.BranchRecords {
	if !snapshot.Exists || snapshot.Newest.Kind != model.HeadOurs {
		return report.BranchRecords{Records: model.NewObserved().Records}
	}
	branch, problems := report.ReadBranch(snapshot.Files)
	for _, p := range problems {
		l.log.Error("file of the status branch cannot be used", "err", p)
	}
	for path, err := range snapshot.Skipped {
		l.log.Error("file of the status branch cannot be read", "path", path, "err", err)
		branch.Unreadable = append(branch.Unreadable, path)
	}
	return branch
}

// begin gives the source the revision that was applied last and what depends on it, once.
func (l *leader) begin() {
	if !l.begun {
		l.begun = true
		l.source.Begin(gitsource.BeginningOf(l.registry.Observed()))
	}
}

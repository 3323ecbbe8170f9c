package gitsource

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// Defaults of Options.
const (
	DefaultBranch   = "main"
	DefaultInterval = time.Minute
	DefaultTimeout  = time.Minute
)

// Options configure a Source.
type Options struct {
	URL    string // https, http, ssh, git@host:path, file or a path
	Branch string // "" is DefaultBranch
	Path   string // the folder of the manifests; "" is the whole repository

	Interval time.Duration // between looks at the branch; 0 is DefaultInterval
	Timeout  time.Duration // of one look; 0 is DefaultTimeout
	Auth     Auth

	// Strict rejects a revision as a whole if anything in it is wrong.
	Strict bool
	// AllowPlaintextSecrets is handed to the decoder.
	AllowPlaintextSecrets bool

	// Tenants say what files may define; none = one operator owns all.
	Tenants model.Tenants

	// Dir is a directory that belongs to the Source alone.
	Dir string

	Log        *slog.Logger // nil logs nothing
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil is time.Now

	// Decode reads one manifest file; nil is model.Decode.
	Decode func(file string, data []byte) ([]model.Object, []model.Problem)
	// Validate says what is wrong with an object taking the place of another of
	// the same identity; nil is model.ValidateUpdate.
	Validate func(before, after model.Object) []model.Problem
	// CrossCheck says what is wrong between objects; nil is model.CrossCheck.
	CrossCheck func(*model.Desired) []model.Problem
}

// Source is the watched branch and the desired state that comes of it.
type Source struct {
	opts    Options
	log     *slog.Logger
	remote  *remote
	metrics *sourceMetrics

	desired atomic.Pointer[model.Desired]
	status  atomic.Pointer[model.SourceState]
	// beginning is what the records say; nil until they were read.
	beginning atomic.Pointer[Beginning]
	changed   chan struct{}
	wake      chan struct{}

	op sync.Mutex // one operation at a time; guards all below

	store     *store
	reader    reader
	state     *state // what the folder remembers, nil if nothing
	begun     bool   // whether it is known what was applied, or that nobody knows
	force     force
	head      plumbing.Hash      // the revision in force
	at        model.Applied      // the same, with where it comes from
	cause     model.AbsenceCause // why the next revision does not descend, whatever Git says
	approvals []string
	keep      int           // packs in the store before it is fetched afresh
	attempts  int           // that failed in a row to find something far back
	evaluated plumbing.Hash // the newest revision that was judged, in force or not
	verdict   model.SourceState

	retryAfter atomic.Int64 // nanoseconds that the server asked us to stay away, 0 for none
}

// New returns a Source. It touches neither the network nor the disk.
func New(opts Options) (*Source, error) {
	opts = withDefaults(opts)
	var err error
	if opts.Path, err = cleanPath(opts.Path); err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	if opts.Dir == "" {
		return nil, errors.New("git: no directory to keep the repository in")
	}
	r, err := newRemote(opts.URL, opts.Branch, opts.Auth, opts.Timeout)
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	s := &Source{
		opts: opts, log: opts.Log, remote: r, metrics: newSourceMetrics(opts.Registerer), keep: refetchAfter, force: newForce(),
		changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	s.reader = reader{decode: opts.Decode, count: s.metrics.decoded.Inc, tenants: opts.Tenants}
	s.status.Store(&model.SourceState{})
	r.retryAfter = func(d time.Duration) { s.retryAfter.Store(int64(d)) }
	return s, nil
}

func withDefaults(opts Options) Options {
	if opts.Branch == "" {
		opts.Branch = DefaultBranch
	}
	if opts.Interval <= 0 {
		opts.Interval = DefaultInterval
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return withModel(opts)
}

// cleanPath returns the folder as go-git names it: "." or "a/b".
func cleanPath(dir string) (string, error) {
	clean := path.Clean(strings.TrimSuffix(filepath.ToSlash(dir), "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("path %q is not a folder of the repository: write it relative to its root", dir)
	}
	return clean, nil
}

// Desired returns what is in force, nil before Begin and before the first revision
// was read.
func (s *Source) Desired() *model.Desired { return s.desired.Load() }

// State returns the state of the branch as a whole, also before the first
// revision was read.
func (s *Source) State() model.SourceState { return *s.status.Load() }

// Changed delivers a value after Desired or State changed.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Wake asks for a look at the branch at once. Any number of calls while one is
// under way come to one more.
func (s *Source) Wake() { signal(s.wake) }

// Run looks at the branch now, after each interval and after Wake, until ctx
// ends. It returns nil then.
func (s *Source) Run(ctx context.Context) error {
	defer s.close()
	for failures, n := 0, 0; ; n++ {
		if err := s.Sync(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		if !s.wait(ctx, failures, n) {
			return nil
		}
	}
}

// wait returns false when ctx ended. A server that asked us to stay away is left
// alone even when Wake is called.
func (s *Source) wait(ctx context.Context, failures, n int) bool {
	if away := time.Duration(s.retryAfter.Swap(0)); away > 0 {
		if !sleep(ctx, away, nil) {
			return false
		}
	}
	return sleep(ctx, pause(s.opts.Interval, failures, s.opts.URL, n), s.wake)
}

// sleep returns false when ctx ended, true after d or when wake spoke.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// pause is how long to wait before look n, after so many failures in a row: the
// interval give or take a fifth, up to eight times as long.
func pause(interval time.Duration, failures int, name string, n int) time.Duration {
	d := interval << min(max(failures-1, 0), 3)
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", name, n)
	return d*4/5 + time.Duration(float64(d)*0.4*float64(h.Sum32()%1000)/1000)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *Source) close() {
	s.op.Lock()
	defer s.op.Unlock()
	s.remote.close()
	if s.store != nil {
		s.store.close()
		s.store = nil
	}
}

// Sync looks at the branch once. An error means that it could not be looked at;
// what is in force stays so, and State says why.
func (s *Source) Sync(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	began := time.Now()
	changed, err := s.sync(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.metrics.duration.Observe(time.Since(began).Seconds())
	switch {
	case err != nil:
		s.metrics.fetches.WithLabelValues(string(kindOf(err))).Inc()
		s.log.WarnContext(ctx, "watched branch cannot be read", "branch", s.opts.Branch, "err", message(err))
		s.fail(err)
		return fmt.Errorf("fetch %s: %w", s.opts.Branch, err)
	case changed:
		s.metrics.fetches.WithLabelValues(resultChanged).Inc()
	default:
		s.metrics.fetches.WithLabelValues(resultUnchanged).Inc()
	}
	return nil
}

// sync fetches and judges; a store that turns out to be damaged is fetched afresh.
func (s *Source) sync(ctx context.Context) (changed bool, err error) {
	if err := s.open(); err != nil {
		return false, err
	}
	b := s.beginning.Load()
	if b != nil {
		if err := s.beginCached(b); err != nil {
			return false, err
		}
	}
	head, way, err := s.fetch(ctx, b)
	if err != nil || b == nil {
		return false, err
	}
	if err := s.beginLate(ctx, b, way); err != nil {
		return false, err
	}
	if head == s.evaluated {
		s.announce(s.verdict)
	} else {
		changed, err = true, s.judge(head, way)
	}
	if errors.Is(err, errNotReadable) {
		s.log.WarnContext(ctx, "object store is damaged and fetched afresh", "err", err)
		var now plumbing.Hash
		switch now, err = s.refetch(ctx, head); {
		case err != nil:
		case now != head:
			err = errHeadMoved
		default:
			err = s.judge(head, way)
		}
	}
	if err == nil {
		s.tidy(ctx, head)
	}
	return changed && err == nil, err
}

func (s *Source) stateFile() string { return filepath.Join(s.opts.Dir, "state.json") }

// open opens the store and reads what the folder remembers, once.
func (s *Source) open() error {
	if s.store != nil {
		return nil
	}
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if s.state == nil {
		var err error
		if s.state, err = readState(s.stateFile()); err != nil {
			s.log.Warn("what the source kept is damaged and given up", "err", err)
		}
	}
	st, err := openStore(filepath.Join(s.opts.Dir, "objects.git"))
	if err != nil {
		return err
	}
	s.store = st
	return nil
}

// fetch brings the branch's head into the store and returns it, with how it relates
// to the revision in force.
func (s *Source) fetch(ctx context.Context, b *Beginning) (plumbing.Hash, ancestry, error) {
	head, err := s.bring(ctx, plumbing.ZeroHash, fetchDepth)
	if err != nil {
		return plumbing.ZeroHash, ancestry{}, err
	}
	known := s.head
	if !s.begun {
		known = b.appliedHash()
	}
	if head == s.evaluated {
		return head, ancestry{lineage: same}, nil
	}
	way := s.store.relate(known, head)
	if way.truncated {
		// The revision in force lies further back, if anywhere: only the history
		// between tells a busy day from a rewritten history.
		if head, err = s.bring(ctx, head, searchDepth); err != nil {
			return plumbing.ZeroHash, ancestry{}, err
		}
		way = s.store.relate(known, head)
	}
	if way.truncated && s.sameSource(b) {
		way, err = s.search(ctx, known, head)
	}
	return head, way, err
}

// sameSource reports whether the revision in force comes from the branch as it is
// configured. A commit that another one has too was not made for this one.
func (s *Source) sameSource(b *Beginning) bool {
	return s.cause == "" && (s.begun || b != nil && b.Applied.SameSource(s.source()))
}

// search looks for a commit further back than is fetched with all files. One that is
// not found, or a server that will not tell, counts as a rewritten history.
func (s *Source) search(ctx context.Context, known, head plumbing.Hash) (ancestry, error) {
	way, err := s.searchCommits(ctx, known, head)
	if err != nil && s.again(err) {
		return ancestry{}, fmt.Errorf("look for the revision in force: %w", err)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the history between two revisions cannot be had: it counts as rewritten", "err", message(err))
		return ancestry{lineage: rewritten}, nil
	}
	s.attempts = 0
	return way, nil
}

// errHeadMoved is a branch that got another head between two requests: the next look
// finds it.
var errHeadMoved error = &failure{kind: failureNetwork, err: errors.New("the branch moved while it was read")}

func (s *Source) searchCommits(ctx context.Context, known, head plumbing.Hash) (way ancestry, err error) {
	parent := ctx
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return ancestry{}, err
	}
	defer closeSession(session)
	adv, now, err := s.remote.advertised(ctx, session)
	if err != nil {
		return ancestry{}, err
	}
	if !adv.Capabilities.Supports(capability.Filter) {
		closeSession(session)
		if _, err := s.bring(parent, head, wholeDepth); err != nil {
			return ancestry{}, err
		}
		return s.store.relate(known, head), nil
	}
	if now != head {
		return ancestry{}, errHeadMoved
	}
	commits, err := openStore(filepath.Join(s.opts.Dir, "commits.git"))
	if err != nil {
		return ancestry{}, err
	}
	if commits, err = commits.renewed(); err != nil {
		return ancestry{}, err
	}
	defer func() { err = errors.Join(err, commits.discard()) }()
	w := wanted{commits: []plumbing.Hash{head}, depth: commitDepth, filter: packp.FilterTreeDepth(0)}
	if err := fetchWanted(ctx, session, adv, commits, w); err != nil {
		return ancestry{}, s.remote.explain(ctx, err)
	}
	return commits.relate(known, head), nil
}

// bring opens a session, reads the branch's head and fetches it if the store does
// not hold it, or if it is the commit to deepen.
func (s *Source) bring(ctx context.Context, deepen plumbing.Hash, depth int) (plumbing.Hash, error) {
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer closeSession(session)
	adv, head, err := s.remote.advertised(ctx, session)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if head != deepen && (head == s.evaluated || s.store.has(head)) {
		return head, nil
	}
	w := wanted{commits: []plumbing.Hash{head}, depth: depth}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = filterLarge
	}
	w.have = slices.Concat(s.store.newest(s.head, fetchDepth), s.store.newest(s.evaluated, fetchDepth))
	if err := fetchWanted(ctx, session, adv, s.store, w); err != nil {
		return plumbing.ZeroHash, s.remote.explain(ctx, err)
	}
	if size, left := s.store.left[head]; left {
		return plumbing.ZeroHash, fmt.Errorf("commit %s has %d bytes, of at most %d: shorten its message", head, size, maxCommit)
	}
	if !s.store.has(head) {
		return plumbing.ZeroHash, fmt.Errorf("%w: commit %s did not arrive", errNotReadable, head)
	}
	return head, nil
}

func closeSession(c io.Closer) { _ = c.Close() }

// refetch throws the store away, fetches into a new one and returns the head.
func (s *Source) refetch(ctx context.Context, head plumbing.Hash) (plumbing.Hash, error) {
	st, err := s.store.renewed()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.store = st
	return s.bring(ctx, head, fetchDepth)
}

// tidy replaces a store that took many fetches by one fetched afresh. Failing to is
// put right after a later look.
func (s *Source) tidy(ctx context.Context, head plumbing.Hash) {
	if s.store.packs() <= s.keep {
		return
	}
	if err := s.replaceStore(ctx, head); err != nil {
		s.log.WarnContext(ctx, "object store grows, for it cannot be fetched afresh", "err", message(err))
	}
}

func (s *Source) replaceStore(ctx context.Context, head plumbing.Hash) error {
	fresh, err := openStore(s.store.dir + ".new")
	if err != nil {
		return err
	}
	if fresh, err = fresh.renewed(); err != nil {
		return err
	}
	old := s.store
	s.store = fresh
	if _, err := s.bring(ctx, head, fetchDepth); err != nil {
		s.store = old
		return errors.Join(err, fresh.discard())
	}
	s.store, err = old.replacedBy(fresh)
	return err
}

// judge decides whether head comes into force. It fails only if head cannot be
// read.
func (s *Source) judge(head plumbing.Hash, way ancestry) error {
	c, err := s.store.commit(head)
	if err != nil {
		return fmt.Errorf("%w: read commit %s: %w", errNotReadable, head, err)
	}
	files, err := s.reader.read(s.store, c.TreeHash, s.opts.Path)
	switch {
	case errors.Is(err, errPathMissing):
		s.refuse(head, model.SourcePathMissing, fmt.Sprintf("folder %s is not in %s; %s", s.opts.Path, s.revision(head), s.stays()))
		return nil
	case errors.Is(err, errTooManyManifests), errors.Is(err, errTooMuchToRead):
		s.refuse(head, model.SourceRejected, fmt.Sprintf("%s holds %s, which is the limit; %s", s.revision(head), err, s.stays()))
		return nil
	case errors.Is(err, errTreeTooLarge):
		s.refuse(head, model.SourceRejected, fmt.Sprintf("%s cannot be read: %s; %s", s.revision(head), err, s.stays()))
		return nil
	case err != nil:
		return err
	case len(files) == 0 && !s.force.isEmpty():
		s.refuse(head, model.SourceEmpty, fmt.Sprintf("%s holds no manifest; %s", s.revision(head), s.stays()))
		return nil
	}
	step := s.step(c, way)
	step.files = files
	out := assemble(step, s.rules())
	if s.opts.Strict && model.HasErrors(out.problems) {
		s.reject(head, out.problems)
		return nil
	}
	s.cause, s.approvals = "", step.approvals
	s.head, s.force, s.at = head, out.force, s.source()
	s.at.Commit = head.String()
	s.evaluated, s.verdict = head, model.SourceState{Observed: s.revision(head)}
	// Written down before anybody acts upon it: what is held has to survive a restart.
	s.save()
	s.takeOver(out, len(files), false)
	return nil
}

// step is the change from what is in force to a commit.
func (s *Source) step(c *object.Commit, way ancestry) change {
	if s.head.IsZero() && s.cause != "" {
		for _, h := range s.store.newest(c.Hash, fetchDepth) {
			if recent, err := s.store.commit(h); err == nil {
				way.between = append(way.between, recent)
			}
		}
	}
	step := change{
		prev: s.force, lineage: way.lineage, revision: s.revision(c.Hash), at: s.opts.Clock(),
		approvals: newest(s.approvals, s.store.approvals(c, way.between)),
	}
	if s.cause != "" {
		step.lineage, step.cause = rewritten, s.cause
	} else if way.lineage == rewritten {
		step.cause = model.AbsentHistoryRewritten
	}
	return step
}

func (s *Source) rules() rules {
	return rules{s.opts.Validate, s.opts.CrossCheck, newToken, s.opts.Tenants}
}

// stays says what is in force instead of a revision that is not taken.
func (s *Source) stays() string {
	if s.head.IsZero() {
		return "nothing is in force yet"
	}
	return string(s.at.Revision()) + " stays in force"
}

// refuse leaves what is in force and says why head is not.
func (s *Source) refuse(head plumbing.Hash, reason, text string) {
	s.log.Warn("revision is not taken over", "revision", s.revision(head), "reason", reason)
	s.evaluated = head
	s.verdict = model.SourceState{Observed: s.revision(head), Reason: reason, Message: text}
	s.announce(s.verdict)
}

// reject is refuse for a revision whose problems are to be shown.
func (s *Source) reject(head plumbing.Hash, problems []model.Problem) {
	i := slices.IndexFunc(problems, isError)
	first := problems[i]
	text := fmt.Sprintf("%s has errors, the first in %s:%d: %s; %s", s.revision(head), first.File, first.Line, first.Message, s.stays())
	s.showProblems(problems)
	if d := s.desired.Load(); d != nil {
		next := *d
		next.Problems = problems
		s.desired.Store(&next)
	}
	s.refuse(head, model.SourceRejected, shorten(text))
}

// takeOver shows what came into force. Restored says that the branch was not looked
// at since.
func (s *Source) takeOver(out outcome, files int, restored bool) {
	now := s.opts.Clock()
	if len(out.force.absent) > 0 {
		s.verdict.Reason, s.verdict.Message = model.SourceHistoryRewritten, out.force.rewriteText()
	}
	s.verdict.Since = since(s.status.Load(), s.verdict.Reason, now)
	d := out.desired()
	d.Revision, d.URL, d.Path = s.at.Revision(), s.at.URL, s.at.Path
	d.Time, d.Approvals, d.Restored, d.Source = now, s.approvals, restored, s.verdict
	s.metrics.revision.Set(float64(now.Unix()))
	s.metrics.files.Set(float64(files))
	s.showProblems(out.problems)
	s.status.Store(&d.Source)
	s.desired.Store(d)
	signal(s.changed)
	s.log.Info("revision in force", "revision", d.Revision, "manifests", files, "objects", len(out.force.objects), "problems", len(out.problems), "absent", len(out.force.absent))
}

func (s *Source) showProblems(problems []model.Problem) {
	counts := map[model.Severity]int{model.SeverityError: 0, model.SeverityWarning: 0}
	for _, p := range problems {
		counts[p.Severity]++
	}
	for severity, n := range counts {
		s.metrics.problems.WithLabelValues(string(severity)).Set(float64(n))
	}
}

// fail announces that the branch cannot be looked at.
func (s *Source) fail(err error) {
	st := model.SourceState{Observed: s.verdict.Observed, Reason: model.SourceFetchFailed, Message: message(err)}
	if kindOf(err) == failureEmpty {
		st.Reason = model.SourceEmpty
		st.Message += "; " + s.stays()
	}
	s.announce(st)
}

// announce shows a state of the source with what is in force, if it differs from
// the one shown.
func (s *Source) announce(st model.SourceState) {
	old, d := s.status.Load(), s.desired.Load()
	st.Since = since(old, st.Reason, s.opts.Clock())
	confirmed := d != nil && d.Restored && st.Reason != model.SourceFetchFailed
	if st == *old && !confirmed {
		return
	}
	s.status.Store(&st)
	if d != nil {
		next := *d
		next.Source, next.Restored = st, d.Restored && !confirmed
		s.desired.Store(&next)
	}
	signal(s.changed)
}

// since is when a reason began to hold.
func since(old *model.SourceState, reason string, now time.Time) time.Time {
	switch {
	case reason == "":
		return time.Time{}
	case old.Reason == reason:
		return old.Since
	}
	return now
}

// save writes down what a restart would have to fetch. Failing to is not worth
// losing the revision for.
func (s *Source) save() {
	before := s.state
	st := &state{Version: stateVersion, Approvals: s.approvals}
	if before != nil {
		st.Heads = before.Heads
	}
	st.Heads = append(slices.Clip(st.Heads[max(0, len(st.Heads)-maxHeads+1):]), s.at)
	st.setForce(s.force, func(h plumbing.Hash) ([]byte, error) {
		if before != nil && before.Blobs[h.String()] != nil {
			return before.Blobs[h.String()], nil
		}
		return s.store.blob(h)
	})
	s.state = st
	if err := st.write(s.stateFile()); err != nil {
		s.log.Error("what the source holds is not kept: a restart will know no last good version of files that are wrong", "err", err)
	}
}

// revision names a commit of the branch.
func (s *Source) revision(h plumbing.Hash) model.Revision {
	if h.IsZero() {
		return ""
	}
	return model.Revision(s.opts.Branch + "@sha1:" + h.String())
}

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
	// newFleet is set when nothing was ever done for this repository.
	newFleet atomic.Bool
	changed  chan struct{}
	wake     chan struct{}

	op sync.Mutex // one operation at a time; guards all below

	store     *store
	reader    reader
	state     *state // nil until something is in force
	restored  bool   // whether state was read back
	force     force
	head      plumbing.Hash // the revision in force
	keep      int           // packs in the store before it is fetched afresh
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
		opts: opts, log: opts.Log, remote: r, metrics: newSourceMetrics(opts.Registerer), keep: refetchAfter,
		changed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	s.reader = reader{decode: opts.Decode, count: s.metrics.decoded.Inc}
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

// Desired returns what is in force, nil before the first revision was read.
func (s *Source) Desired() *model.Desired { return s.desired.Load() }

// State returns the state of the branch as a whole, also before the first
// revision was read.
func (s *Source) State() model.SourceState { return *s.status.Load() }

// Changed delivers a value after Desired or State changed.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Wake asks for a look at the branch at once. Any number of calls while one is
// under way come to one more.
func (s *Source) Wake() { signal(s.wake) }

// NewFleet says that nothing was ever done for this repository: a first revision
// without manifests is a beginning then, and takes nothing away.
func (s *Source) NewFleet() {
	s.newFleet.Store(true)
	s.Wake()
}

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
	s.restore()
	head, err := s.fetch(ctx)
	if err != nil {
		return false, err
	}
	s.restoreLate()
	if head == s.evaluated && !(s.verdict.Reason == model.SourceEmpty && s.mayBeEmpty()) {
		s.announce(s.verdict)
		return false, nil
	}
	err = s.judge(head)
	if errors.Is(err, errNotReadable) {
		s.log.WarnContext(ctx, "object store is damaged and fetched afresh", "err", err)
		if head, err = s.refetch(ctx, head); err == nil {
			err = s.judge(head)
		}
	}
	return err == nil, err
}

func (s *Source) stateFile() string { return filepath.Join(s.opts.Dir, "state.json") }

// open opens the store, once. One that belongs to another source is deleted.
func (s *Source) open() error {
	if s.store != nil {
		return nil
	}
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	dir := filepath.Join(s.opts.Dir, "objects.git")
	if s.state == nil {
		old, err := readState(s.stateFile())
		if err != nil {
			s.log.Warn("state of the source is damaged and given up", "err", err)
		}
		if old == nil || !old.belongsTo(s.opts.URL, s.opts.Branch, s.opts.Path) {
			if err := os.RemoveAll(dir); err != nil {
				return fmt.Errorf("delete object store: %w", err)
			}
			s.restored = true // there is nothing to restore
			s.force.forgotten = err != nil
		} else {
			s.state = old
		}
	}
	st, err := openStore(dir)
	if err != nil {
		return err
	}
	s.store = st
	return nil
}

// restore puts the revision in force before a restart in force again, if the
// store holds it.
func (s *Source) restore() {
	if s.restored {
		return
	}
	head := plumbing.NewHash(s.state.Head)
	c, err := s.store.commit(head)
	if err != nil {
		return
	}
	files, err := s.reader.read(s.store, c.TreeHash, s.opts.Path)
	if err != nil {
		return
	}
	held := s.state.force(s.reader.parse)
	for _, f := range files {
		held.paths[f.path] = true
	}
	s.restored, s.head, s.evaluated = true, head, head
	if s.state.Rewritten != nil {
		s.verdict = *s.state.Rewritten
	}
	s.verdict.Observed = s.revision(head)
	out := s.assemble(held, files, same)
	out.restored = true
	s.takeOver(head, out, s.state.Approvals, len(files))
	s.log.Info("revision restored", "revision", s.revision(head))
}

// restoreLate is for a store that did not hold the revision in force before the
// fetch. If it does not hold it now either, only what was held is known.
func (s *Source) restoreLate() {
	s.restore()
	if s.restored {
		return
	}
	s.restored = true
	s.head = plumbing.NewHash(s.state.Head)
	s.force = s.state.force(s.reader.parse)
	s.force.forgotten = true
	s.log.Warn("revision in force is not known any more: nothing is deleted until a commit follows", "revision", s.revision(s.head))
}

// fetch brings the branch's head into the store and returns it.
func (s *Source) fetch(ctx context.Context) (plumbing.Hash, error) {
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	head, err := s.bring(ctx, plumbing.ZeroHash, fetchDepth)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	known := s.head
	if known.IsZero() && s.state != nil {
		known = plumbing.NewHash(s.state.Head)
	}
	if head != s.evaluated && s.store.relate(known, head).truncated {
		// The revision in force lies further back, if anywhere: only the history
		// between tells a busy day from a rewritten history.
		if head, err = s.bring(ctx, head, searchDepth); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	if s.head == head && s.store.packs() > s.keep {
		return s.refetch(ctx, head)
	}
	return head, nil
}

// bring opens a session, reads the branch's head and fetches it if the store does
// not hold it, or if it is the commit to deepen.
func (s *Source) bring(ctx context.Context, deepen plumbing.Hash, depth int) (plumbing.Hash, error) {
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
	have := slices.Concat(s.store.newest(s.head, fetchDepth), s.store.newest(s.evaluated, fetchDepth))
	if err := fetchPack(ctx, session, adv, s.store.storage, head, have, depth); err != nil {
		return plumbing.ZeroHash, s.remote.explain(ctx, err)
	}
	if !s.store.has(head) {
		return plumbing.ZeroHash, fmt.Errorf("%w: commit %s did not arrive", errNotReadable, head)
	}
	return head, nil
}

func closeSession(c io.Closer) { _ = c.Close() }

// refetch throws the store away, fetches into a new one and returns the head.
func (s *Source) refetch(ctx context.Context, head plumbing.Hash) (plumbing.Hash, error) {
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	st, err := s.store.renewed()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.store = st
	return s.bring(ctx, head, fetchDepth)
}

// judge decides whether head comes into force. It fails only if head cannot be
// read.
func (s *Source) judge(head plumbing.Hash) error {
	c, err := s.store.commit(head)
	if err != nil {
		return fmt.Errorf("%w: read commit %s: %w", errNotReadable, head, err)
	}
	files, err := s.reader.read(s.store, c.TreeHash, s.opts.Path)
	switch {
	case errors.Is(err, errPathMissing):
		s.refuse(head, model.SourcePathMissing, fmt.Sprintf("folder %s is not in %s; %s", s.opts.Path, s.revision(head), s.stays()))
		return nil
	case errors.Is(err, errTooManyManifests):
		s.refuse(head, model.SourceRejected, fmt.Sprintf("%s holds %s, which is the limit; %s", s.revision(head), err, s.stays()))
		return nil
	case err != nil:
		return err
	case len(files) == 0 && !s.mayBeEmpty():
		s.refuse(head, model.SourceEmpty, fmt.Sprintf("%s holds no manifest; %s", s.revision(head), s.stays()))
		return nil
	}
	way := s.store.relate(s.head, head)
	out := s.assemble(s.force, files, way.lineage)
	if s.opts.Strict && model.HasErrors(out.problems) {
		s.reject(head, out.problems)
		return nil
	}
	s.evaluated, s.verdict = head, model.SourceState{Observed: s.revision(head)}
	if way.lineage == rewritten {
		s.verdict.Reason, s.verdict.Message = model.SourceHistoryRewritten, s.rewrite(head, out.force)
	}
	approvals := s.store.approvals(c, way.between)
	// Written down before anybody acts upon it: a restart must not go back behind
	// what was acted upon, or the claims that it does not know yet look released.
	s.head, s.force = head, out.force
	s.save(approvals)
	s.takeOver(head, out, approvals, len(files))
	return nil
}

// mayBeEmpty reports whether a revision without manifests takes nothing away.
func (s *Source) mayBeEmpty() bool {
	if s.head.IsZero() {
		return s.newFleet.Load()
	}
	f := s.force
	return len(f.objects)+len(f.lost)+len(f.unread) == 0 && !f.forgotten
}

func (s *Source) assemble(prev force, files []manifest, l lineage) outcome {
	return assemble(prev, files, l, rules{s.opts.Validate, s.opts.CrossCheck})
}

// stays says what is in force instead of a revision that is not taken.
func (s *Source) stays() string {
	if s.head.IsZero() {
		return "nothing is in force yet"
	}
	return string(s.revision(s.head)) + " stays in force"
}

func (s *Source) rewrite(head plumbing.Hash, f force) string {
	vanished := 0
	for _, p := range f.objects {
		if p.vanished {
			vanished++
		}
	}
	text := fmt.Sprintf("%s does not descend from %s", s.revision(head), s.revision(s.head))
	if vanished > 0 {
		text += fmt.Sprintf("; %d objects that it lacks stay in force until the next commit lacks them too", vanished)
	}
	return text
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

// takeOver puts head in force.
func (s *Source) takeOver(head plumbing.Hash, out outcome, approvals []string, files int) {
	now := s.opts.Clock()
	s.head, s.force = head, out.force
	d := out.desired()
	d.Revision, d.Time, d.Approvals, d.Restored = s.revision(head), now, approvals, out.restored
	s.verdict.Since = since(s.status.Load(), s.verdict.Reason, now)
	d.Source = s.verdict
	s.metrics.revision.Set(float64(now.Unix()))
	s.metrics.files.Set(float64(files))
	s.showProblems(out.problems)
	s.status.Store(&d.Source)
	s.desired.Store(d)
	signal(s.changed)
	s.log.Info("revision in force", "revision", d.Revision, "manifests", files, "objects", len(out.force.objects), "problems", len(out.problems))
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

// save writes down what a restart needs. Failing to is not worth losing the
// revision for.
func (s *Source) save(approvals []string) {
	before := s.state
	st := &state{
		Version: stateVersion, URL: s.opts.URL, Branch: s.opts.Branch, Path: s.opts.Path,
		Head: s.head.String(), Approvals: approvals,
	}
	if s.verdict.Reason == model.SourceHistoryRewritten {
		verdict := s.verdict
		st.Rewritten = &verdict
	}
	st.setForce(s.force, func(h plumbing.Hash) ([]byte, error) {
		if before != nil && before.Blobs[h.String()] != nil {
			return before.Blobs[h.String()], nil
		}
		return s.store.blob(h)
	})
	s.state = st
	if err := st.write(s.stateFile()); err != nil {
		s.log.Error("state of the source is not kept: a restart will not know what is in force", "err", err)
	}
}

// revision names a commit of the branch.
func (s *Source) revision(h plumbing.Hash) model.Revision {
	if h.IsZero() {
		return ""
	}
	return model.Revision(s.opts.Branch + "@sha1:" + h.String())
}

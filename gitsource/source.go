package gitsource

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
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

	"ingot/gitsource/sops"
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
	URL  string // https, http, ssh, git@host:path, file or a path
	Ref         // what is followed; nothing is DefaultBranch
	Path string // the folder of the manifests; "" is the whole repository
	// Verify says which signatures a revision must carry.
	Verify Verify

	Interval time.Duration // between looks at the branch; 0 is DefaultInterval
	Timeout  time.Duration // of one look; 0 is DefaultTimeout
	Auth     Auth

	// AllowPlaintextSecrets is handed to the decoder.
	AllowPlaintextSecrets bool
	// AgeKeyFile holds the age identities that files encrypted with SOPS are opened with; ""
	// is none. It is read again before each look.
	AgeKeyFile string

	// Tenants say what files may define; none = one operator owns all.
	Tenants model.Tenants

	// Dir is a directory that belongs to the Source alone.
	Dir string

	Log        *slog.Logger // nil logs nothing
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil is time.Now

	Checks
}

// Checks are how manifests are read and checked.
type Checks struct {
	// Decode reads one manifest file; nil is model.Decode.
	Decode func(file string, data []byte) ([]model.Object, []model.Problem)
	// Validate says what is wrong with an object taking the place of another of
	// the same identity; nil is model.ValidateUpdate.
	Validate func(before, after model.Object) []model.Problem
	// CrossCheck says what is wrong between objects; nil is that of model.CrossChecker.
	CrossCheck func(*model.Desired) []model.Problem
	// StillFit tells of some changes, made since CrossCheck found nothing, that it finds
	// nothing again; nil never does.
	StillFit func(*model.Desired, []model.Change) bool
	// Boots returns the claims that cannot boot. They come into force: only the problems are shown. nil means no check.
	Boots func(*model.Desired) []model.Problem
}

// withBoots adds the problems of claims that cannot boot.
func withBoots(d *model.Desired, boots func(*model.Desired) []model.Problem) *model.Desired {
	if boots != nil {
		d.Problems = append(slices.Clip(d.Problems), boots(d)...)
		model.SortProblems(d.Problems)
	}
	return d
}

// Source is the watched branch and the desired state that comes of it.
type Source struct {
	opts    Options
	keys    *sops.Keys
	metrics *sourceMetrics
	view

	// beginning is what the records say; nil until they were read.
	beginning  atomic.Pointer[Beginning]
	wake       chan struct{}
	retryAfter atomic.Int64 // nanoseconds that the server asked us to stay away, 0 for none

	op sync.Mutex // one operation at a time; guards all below

	mirror
	judgement
	revisionInForce
	reader reader
	state  *state // what the folder remembers, nil if nothing
	begun  bool   // whether the revision applied is known, or known to be lost
	keyErr error  // why the key file could not be read last
}

// judgement is the result of the last look.
type judgement struct {
	head      plumbing.Hash // the revision in force
	evaluated plumbing.Hash // the newest revision that was judged, in force or not
	target    target        // what was judged last, or is being
	trust     trust         // in target
	verdict   model.SourceState
}

func (j *judgement) decided(t target) bool { return t.commit == j.evaluated && t == j.target }

// revisionInForce is what came into force last.
type revisionInForce struct {
	effective effective
	at        model.Applied      // the head, with where it comes from
	anchor    model.Applied      // what the next revision must descend from where signatures are verified
	signer    string             // of the revision in force
	tips      []plumbing.Hash    // were in force and are not among the head's ancestors, oldest first
	cause     model.AbsenceCause // why the next revision does not descend, whatever Git says
	approvals []string
}

// New returns a Source. It touches neither the network nor the disk.
func New(opts Options) (*Source, error) {
	keys := sops.NewKeys(opts.AgeKeyFile)
	var err error
	if opts.Path, err = cleanPath(opts.Path); err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	opts = withDefaults(opts, keys)
	if opts.Dir == "" {
		return nil, errors.New("git: no directory to keep the repository in")
	}
	r, err := newRemote(opts.URL, opts.Ref, opts.Auth, opts.Timeout)
	if err == nil {
		err = opts.Verify.Check(opts.Ref)
	}
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	s := &Source{
		opts: opts, keys: keys, wake: make(chan struct{}, 1),
		view:            view{clock: opts.Clock, changed: make(chan struct{}, 1)},
		mirror:          mirror{remote: r, dir: opts.Dir, log: opts.Log, keep: refetchAfter},
		revisionInForce: revisionInForce{effective: newEffective()},
	}
	s.metrics = newSourceMetrics(opts.Registerer, s.lag)
	s.reader = reader{decode: opts.Decode, count: s.metrics.decoded.Inc, tenants: opts.Tenants}
	s.status.Store(&model.SourceState{})
	r.retryAfter = func(d time.Duration) { s.retryAfter.Store(int64(d)) }
	return s, nil
}

func withDefaults(opts Options, keys *sops.Keys) Options {
	if opts.Ref == (Ref{}) {
		opts.Branch = DefaultBranch
	}
	if opts.Verify.Mode == "" {
		opts.Verify.Mode = VerifyNone
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
	return withModel(opts, keys)
}

// cleanPath returns the folder as go-git names it: "." or "a/b".
func cleanPath(dir string) (string, error) {
	clean := path.Clean(strings.TrimSuffix(filepath.ToSlash(dir), "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("path %q is not a folder of the repository: write it relative to its root", dir)
	}
	return clean, nil
}

// offer notes what the newest commits approve, if they may be believed.
func (s *Source) offer(t target) {
	if s.opts.Verify.trust(s.store, t, s.clock()).problem != "" {
		return
	}
	var recent tokens
	for _, h := range s.store.newest(t.commit, fetchDepth) {
		if c, err := s.store.commit(h); err == nil {
			recent.addOlder(c)
		}
	}
	approved := recent.newestLast()
	s.offered.Store(&approved)
}

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

// pause is how long to wait before look n, after some failures in a row: the
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
	if err == nil {
		at := s.opts.Clock()
		s.fetchedAt.Store(&at)
	}
	switch {
	case err != nil:
		s.metrics.fetches.WithLabelValues(string(kindOf(err))).Inc()
		s.log.WarnContext(ctx, "watched branch cannot be read", "branch", s.opts.Ref.String(), "err", message(err))
		s.fail(err)
		return fmt.Errorf("fetch %s: %w", s.opts.Ref, err)
	case changed:
		s.metrics.fetches.WithLabelValues(resultChanged).Inc()
	default:
		s.metrics.fetches.WithLabelValues(resultUnchanged).Inc()
	}
	s.metrics.fetched.Set(float64(s.opts.Clock().Unix()))
	return nil
}

// sync fetches and judges; a store that turns out to be damaged is fetched afresh.
func (s *Source) sync(ctx context.Context) (changed bool, err error) {
	if err := s.open(); err != nil {
		return false, err
	}
	s.reloadKeys(ctx)
	b := s.beginning.Load()
	defer func() {
		looked := err == nil || kindOf(err) == failureEmpty
		s.nothing.Store(b != nil && s.begun && s.effective.isEmpty() && looked)
	}()
	if b != nil {
		if err := s.beginCached(b); err != nil {
			return false, err
		}
	}
	s.reverify()
	endWatch := s.watchSilence(ctx)
	t, way, err := s.fetch(ctx, b)
	endWatch()
	if err == nil && b == nil {
		s.offer(t)
	}
	if err != nil || b == nil {
		return false, err
	}
	seen := t.revision()
	s.seen.Store(&seen)
	if err := s.beginLate(ctx, b, t, way); err != nil || !s.begun {
		return false, err
	}
	head := t.commit
	if s.decided(t) {
		s.announce(s.shown())
	} else {
		changed, err = true, s.judge(t, way)
	}
	if errors.Is(err, errNotReadable) {
		s.log.WarnContext(ctx, "object store is damaged and fetched again", "err", err)
		var now plumbing.Hash
		switch now, err = s.refetch(ctx, s.judgement, head); {
		case err != nil:
		case now != head:
			err = errHeadMoved
		default:
			err = s.judge(t, way)
		}
	}
	s.noteLag(head == s.head)
	if err == nil {
		s.tidy(ctx, s.judgement, head)
	}
	return changed && err == nil, err
}

// watchSilence announces a fetch that has received nothing for an interval or several: the state must not be that of the
// last fetch until this one times out. The caller calls end when the fetch has ended.
func (s *Source) watchSilence(ctx context.Context) (end func()) {
	s.remote.received.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for wait := s.opts.Interval; sleep(ctx, wait, nil); {
			silent := time.Since(time.Unix(0, s.remote.received.Load()))
			if wait = s.opts.Interval - silent; wait <= 0 {
				wait = s.opts.Interval
				s.fail(&failure{kind: failureNetwork, err: fmt.Errorf("no answer for %.0f s", silent.Seconds())})
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}

// reloadKeys reads the age identities again. With others than before the files that are
// wrong are decoded again, and the head is judged again.
func (s *Source) reloadKeys(ctx context.Context) {
	changed, err := s.keys.Reload()
	if err != nil && (s.keyErr == nil || err.Error() != s.keyErr.Error()) {
		s.log.WarnContext(ctx, "the key for encrypted files cannot be read, so the former one is used, if there was any", "err", err)
	}
	s.keyErr = err
	if !changed {
		return
	}
	s.log.InfoContext(ctx, "the key for encrypted files was read", "file", s.opts.AgeKeyFile)
	if s.reader.forgetFaulty() {
		s.evaluated = plumbing.ZeroHash
	}
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
			s.log.Warn("the source's saved state is damaged and given up", "err", err)
		}
	}
	st, err := openStore(filepath.Join(s.opts.Dir, "objects.git"))
	if err != nil {
		return err
	}
	s.store = st
	return nil
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

// save writes down what a restart would have to fetch. Failing to is not worth
// losing the revision for.
func (s *Source) save() {
	before := s.state
	st := &state{Version: stateVersion, Approvals: s.approvals}
	if before != nil {
		st.Heads = before.Heads
	}
	st.Heads = append(slices.Clip(st.Heads[max(0, len(st.Heads)-maxHeads+1):]), s.at)
	if s.opts.Verify.on() {
		st.Verified = &verified{Head: s.at, Signer: s.signer, Tag: s.target.tag.String()}
	}
	st.setEffective(s.effective, func(h plumbing.Hash) ([]byte, error) {
		if before != nil && before.Blobs[h.String()] != nil {
			return before.Blobs[h.String()], nil
		}
		return s.store.blob(h)
	})
	s.state = st
	if err := st.write(s.stateFile()); err != nil {
		s.log.Error("the source's state is not saved: after a restart there is no last good version of files with errors", "err", err)
	}
}

package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
)

const day = 24 * time.Hour

// aging is a status branch that a report is published to each day.
type aging struct {
	t     *testing.T
	b     *StatusBranch
	repo  *servedRepo
	clock *clock
	days  int
}

// newAging returns one that keeps 8 days, and so is cut after 10.
func newAging(t *testing.T, url func(*servedRepo) string) *aging {
	t.Helper()
	a := &aging{t: t, repo: newGitRepo(t), clock: newClock()}
	a.start(url(a.repo))
	return a
}

func (a *aging) start(url string) {
	a.t.Helper()
	b := newStatus(a.t, url, Auth{})
	b.opts.Clock, b.opts.Keep = a.clock.Now, 8*day
	a.b = b
}

func (a *aging) files() map[string]string {
	return with(fleet, "README.md", fmt.Sprintf("day %d\n", a.days))
}

func (a *aging) report() *model.Report {
	r := report(7, a.files())
	r.Subject, r.Mark.Sequence = fmt.Sprintf("s1: day %d", a.days), uint64(a.days)
	return r
}

func (a *aging) next() (Published, error) {
	a.days++
	a.clock.now = a.clock.now.Add(day)
	return a.b.Publish(a.t.Context(), a.report())
}

func (a *aging) pass(days int) {
	a.t.Helper()
	for range days {
		if p := ok[Published](a.t)(a.next()); p.Foreign != nil || !p.New {
			a.t.Fatalf("day %d: published %+v", a.days, p)
		}
	}
}

func (a *aging) log() []gitserver.Commit {
	a.t.Helper()
	return ok[[]gitserver.Commit](a.t)(a.repo.ReadLog("status"))
}

func overHTTP(t *testing.T, wrap func(http.Handler) http.Handler) func(*servedRepo) string {
	return func(r *servedRepo) string { return serveHTTP(t, r, gitserver.HTTPOptions{Wrap: wrap}).URL }
}

func overFiles(r *servedRepo) string { return r.URL() }

// S11: the history is bounded by age.
func TestS11HistoryIsCutByAge(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for name, tc := range map[string]struct {
		url    func(*servedRepo) string
		filter bool
	}{
		"over HTTP": {overHTTP(t, nil), true},
		"from a server that sends no commits alone": {overHTTP(t, nil), false},
		"on this machine": {overFiles, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAging(t, tc.url)
			if tc.filter {
				ok[string](t)(a.repo.Git("config", "uploadpack.allowFilter", "true"))
			}
			ok[string](t)(a.repo.Git("config", "receive.fsckObjects", "true"))
			a.pass(11)
			before := a.log()
			if len(before) != 11 {
				t.Fatalf("%d commits before anything is more than 10 days old", len(before))
			}
			was := a.repo.Head("status")
			a.pass(1)
			after := a.log()
			holds(t, a.repo, a.files(), 9) // of 8 days, and today's
			says := "\nSquashed: " + was
			if len(after[8].Parents) > 0 || !strings.HasSuffix(after[8].Message, says) || strings.HasSuffix(after[1].Message, says) {
				t.Errorf("first commit %+v, that before today's %+v", after[8], after[1])
			}
			for i, c := range after[1:] {
				want := before[i]
				if c.Author != want.Author || strings.TrimSuffix(c.Message, says) != want.Message {
					t.Errorf("commit %d became %+v, was %+v", i, c, want)
				}
				trees := ok[string](t)(a.repo.Git("rev-parse", c.Hash+"^{tree}", want.Hash+"^{tree}"))
				if x, y, _ := strings.Cut(strings.TrimSpace(trees), "\n"); x != y {
					t.Errorf("commit %d has another tree: %s", i, trees)
				}
			}
			a.pass(2)
			if n := len(a.log()); n != 11 {
				t.Errorf("%d commits two days later, want 11: it is cut when a quarter more has come together", n)
			}
			a.pass(1)
			if n := len(a.log()); n != 9 {
				t.Errorf("%d commits three days later, want 9", n)
			}
		})
	}
}

func TestWithoutKeepTheHistoryIsNeverCut(t *testing.T) {
	t.Parallel()
	a := newAging(t, overFiles)
	a.b.opts.Keep = 0
	a.pass(15)
	holds(t, a.repo, a.files(), 15)
}

func TestAFleetThatWasIdleForLongKeepsItsLastCommit(t *testing.T) {
	t.Parallel()
	a := newAging(t, overFiles)
	a.pass(3)
	a.clock.now = a.clock.now.Add(400 * day)
	a.pass(1)
	holds(t, a.repo, a.files(), 2)
}

// A machine whose clock has no battery starts in the year 2000, and what it publishes then is no
// older than what it descends from.
func TestACommitOfAClockThatWasBehindIsNotTheEndOfTheHistory(t *testing.T) {
	t.Parallel()
	for name, filter := range map[string]bool{"from a server that sends commits alone": true, "from another": false} {
		t.Run(name, func(t *testing.T) {
			a := newAging(t, overHTTP(t, nil))
			url := a.b.opts.URL
			ok[string](t)(a.repo.Git("config", "uploadpack.allowFilter", fmt.Sprint(filter)))
			a.pass(5)
			today := a.clock.now
			a.clock.now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
			a.pass(1)
			a.clock.now = today
			a.start(url)
			a.pass(5)
			holds(t, a.repo, a.files(), 11)
			a.pass(4) // by then the five first ones are old
			if n := len(a.log()); n > 10 {
				t.Errorf("%d commits once all behind that one are old, want no more than of 9 days", n)
			}
		})
	}
}

// Law 6: a cut changes neither what the newest commit says nor whose it is.
func TestACutKeepsTheMark(t *testing.T) {
	t.Parallel()
	a := newAging(t, overFiles)
	asked := watched(a.b)
	a.pass(11)
	other := newStatus(t, a.repo.URL(), Auth{})
	before := ok[Snapshot](t)(other.Read(t.Context()))
	a.clock.now = a.clock.now.Add(day)
	a.b.squashWhenDue(t.Context())
	if n := len(a.log()); n != 8 {
		t.Fatalf("%d commits once it was cut, want 8", n)
	}
	seen := watched(other)
	if err := other.Look(t.Context()); err != nil || len(*seen) != 1 || (*seen)[0].Mark != before.Newest.Mark || !(*seen)[0].Intact {
		t.Errorf("another Ingot sees %+v, %v, want %+v", *seen, err, before.Newest)
	}
	after := ok[Snapshot](t)(other.Read(t.Context()))
	if after.Head == before.Head || after.Head != a.repo.Head("status") || !after.Newest.Intact {
		t.Errorf("head %s, was %s; newest %+v", after.Head, before.Head, after.Newest)
	}
	after.Head = before.Head
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what another Ingot reads (-before +after):\n%s", diff)
	}
	if a.pass(1); len(*asked) > 0 {
		t.Errorf("asked about its own commits: %+v", *asked)
	}
}

func TestACutLosesAgainstAnotherWriter(t *testing.T) {
	t.Parallel()
	var race atomic.Pointer[func()]
	a := newAging(t, overHTTP(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			push := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack")
			if f := race.Load(); f != nil && push && race.CompareAndSwap(f, nil) {
				(*f)()
			}
			h.ServeHTTP(w, r)
		})
	}))
	a.pass(11)
	theirs := with(fleet, "README.md", "of another Ingot\n")
	takeOver := func() {
		ok[Published](t)(newStatus(t, a.repo.URL(), Auth{}).Publish(t.Context(), report(8, theirs)))
	}
	a.b.opts.Watch = func(context.Context, model.BranchHead) error { return errEnded }
	race.Store(&takeOver)
	if _, err := a.next(); !errors.Is(err, errEnded) {
		t.Errorf("error %v, want %v", err, errEnded)
	}
	holds(t, a.repo, theirs, 12) // with all of the history
}

func TestACutWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	t.Parallel()
	var lose atomic.Bool
	a := newAging(t, overHTTP(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") && lose.CompareAndSwap(true, false) {
				h.ServeHTTP(discard{http.Header{}}, r)
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	}))
	a.pass(11)
	lose.Store(true)
	a.pass(1) // nothing is set back, and nothing foreign
	holds(t, a.repo, a.files(), 9)
}

// A server that refuses a rewritten history gets the next attempt a day later. Reports are still published.
func TestAServerThatRefusesTheCutIsLeftAloneForADay(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	a := newAging(t, overFiles)
	a.pass(11)
	ok[string](t)(a.repo.Git("config", "receive.denyNonFastForwards", "true"))
	a.pass(1)
	holds(t, a.repo, a.files(), 12)
	ok[string](t)(a.repo.Git("config", "receive.denyNonFastForwards", "false"))
	a.clock.now = a.clock.now.Add(time.Hour)
	a.days++
	ok[Published](t)(a.b.Publish(t.Context(), a.report()))
	holds(t, a.repo, a.files(), 13)
	a.clock.now = a.clock.now.Add(23 * time.Hour)
	a.days++
	ok[Published](t)(a.b.Publish(t.Context(), a.report()))
	if n := len(a.log()); n > 11 {
		t.Errorf("%d commits a day later, want it cut", n)
	}
}

func TestASignatureDoesNotStayOnACommitWrittenAnew(t *testing.T) {
	t.Parallel()
	raw := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 1111111111111111111111111111111111111111\n" +
		"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n" +
		"gpgsig -----BEGIN SSH SIGNATURE-----\n parent of all\n -----END SSH SIGNATURE-----\nencoding x\n\nsubject\n\nFence: 1\n"
	want := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" +
		"author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\nencoding x\n\nsubject\n\nFence: 1\nSquashed: x\n"
	in := []byte(raw)
	if diff := cmp.Diff(want, string(withTrailer(withParent(in, [20]byte{}), "Squashed: x"))); diff != "" || string(in) != raw {
		t.Errorf("commit (-want +got):\n%s", diff)
	}
	if got := string(withTrailer([]byte("tree x\n\njust: a subject\n"), "Squashed: x")); got != "tree x\n\njust: a subject\n\nSquashed: x\n" {
		t.Errorf("a commit without trailers becomes %q", got)
	}
}

package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/report"
)

// branch is a status branch in memory.
type branch struct {
	t        *testing.T
	mu       sync.Mutex
	subjects []string
	told     []string // subjects and bodies
	at       []time.Time
	files    map[string][]byte
	failing  bool
	hangs    time.Duration      // how long the next push takes
	away     time.Duration      // for how long a push that fails asks for no other; 0 = it does not say
	asked    []time.Time        // when pushes were tried
	bare     bool               // reports are taken without texts alone
	skips    []model.ServerName // whose record it does not take
	refuses  bool               // what fails fails for it is refused
	errors   atomic.Int32       // that were logged
}

func (b *branch) Publish(_ context.Context, r *model.Report) (Publication, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, time.Now())
	time.Sleep(b.hangs)
	b.hangs = 0
	switch {
	case b.failing && b.away > 0:
		return Publication{}, postponed{b.away}
	case b.failing && b.refuses:
		return Publication{}, fmt.Errorf("%w: protected", ErrRefused)
	case b.failing:
		return Publication{}, errors.New("remote hung up")
	}
	files := rendered(b.t, r)
	if maps.EqualFunc(files, b.files, bytes.Equal) {
		return Publication{Head: "c", Skipped: b.skips, Incomplete: b.bare}, nil
	}
	b.files = files
	b.subjects, b.at = append(b.subjects, r.Subject), append(b.at, time.Now())
	b.told = append(append(b.told, r.Subject), r.Body...)
	return Publication{Head: "c", Committed: true, Skipped: b.skips, Incomplete: b.bare}, nil
}

// postponed is the error of a server that wants no push for a while.
type postponed struct{ away time.Duration }

func (p postponed) Error() string { return "too many requests" }

func (p postponed) RetryAfter() time.Duration { return p.away }

// set changes how the branch behaves from now on, and forgets who asked it.
func (b *branch) set(change func(b *branch)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = nil
	change(b)
}

// fail has pushes fail from now on, or succeed again.
func (b *branch) fail(how bool) { b.set(func(b *branch) { b.failing = how }) }

// tried is how often a push was tried since the last change, taken how many reports the
// branch has taken in all.
func (b *branch) tried() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func (b *branch) taken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.at)
}

// errorCounter counts the errors that are logged.
type errorCounter struct {
	slog.Handler
	n *atomic.Int32
}

func (c errorCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c errorCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		c.n.Add(1)
	}
	return nil
}

// published runs a world with a publisher.
func published(t *testing.T, servers int, test func(w *loopWorld, b *branch), change ...func(w *loopWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w, b := newLoopWorld(t, servers), &branch{t: t}
		for _, f := range change {
			f(w)
		}
		b.failing = w.protected
		w.start()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		p := &Publisher{
			Reporter: &Reporter{Loop: w.loop, Fence: func() uint64 { return 1 }}, Sink: b, Interval: 10 * time.Second, Unlimited: w.unlimited,
			Log: slog.New(errorCounter{slog.DiscardHandler, &b.errors}),
		}
		if w.logged != nil {
			p.Log = slog.New(w.logged)
		}
		w.publisher = p
		go func() { done <- p.Run(ctx) }()
		test(w, b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.stop()
	})
}

func TestTheStatusBranchTellsTheStory(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Available Off")
		story := strings.Join(b.told, "\n")
		for _, want := range []string{
			" → Available",
			"bmc00-system-0: Available → Reserved for default/web",
			"bmc00-system-0: Cleanup → Available",
		} {
			if !strings.Contains(story, want) {
				t.Errorf("no commit says %q:\n%s", want, story)
			}
		}
		if bytes.Contains(b.files[model.ReportReadme], []byte("default/web")) {
			t.Errorf("the page still mentions the claim:\n%s", b.files[model.ReportReadme])
		}
	})
}

func TestPushThatHangsCountsAsFailing(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		b.set(func(b *branch) { b.hangs = time.Minute })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		began := time.Now()
		time.Sleep(45 * time.Second)
		since, err := w.publisher.Failing()
		if err == nil || !strings.HasPrefix(err.Error(), "no answer for 4") || since.Sub(began).Abs() > 15*time.Second {
			t.Errorf("since %s after it began: %v", since.Sub(began), err)
		}
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		if _, err := w.publisher.Failing(); err != nil {
			t.Errorf("after that push: %v", err)
		}
	})
}

func TestCommitsAreAtLeastAnIntervalApartAndNoneIsWithoutChange(t *testing.T) {
	published(t, 3, func(w *loopWorld, b *branch) {
		w.expect(2*time.Minute, 2, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		n := len(b.at)
		w.expect(time.Hour, 0, "Reserved On default/web")
		if len(b.at) != n {
			t.Errorf("%d commits in an hour without change", len(b.at)-n)
		}
		for i := 1; i < len(b.at); i++ {
			if d := b.at[i].Sub(b.at[i-1]); d < 10*time.Second {
				t.Errorf("commits %d and %d are %v apart", i-1, i, d)
			}
		}
	})
}

func TestWhoCannotTellWhetherItLeadsPublishesNothing(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		pass(time.Minute)
		w.deposed.Store(true)
		b.set(func(*branch) {})
		w.change(0, func(m *machine) { m.dead = true })
		w.loop.changed()
		pass(time.Hour)
		if n := b.tried(); n > 0 {
			t.Errorf("it was pushed %d times", n)
		}
		if _, err := w.publisher.Failing(); err == nil {
			t.Error("nobody is told why")
		}
	})
}

func TestAFailedPushIsMadeUpFor(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		b.mu.Lock()
		b.failing = true
		b.mu.Unlock()
		w.expect(5*time.Minute, 0, "Available Off")
		b.mu.Lock()
		b.failing = false
		b.mu.Unlock()
		w.expect(6*time.Minute, 0, "Available Off")
		if !bytes.Contains(b.files["servers/bmc00-system-0.yaml"], []byte("state: Available")) {
			t.Errorf("the branch does not show the server Available:\n%s", b.files["servers/bmc00-system-0.yaml"])
		}
	})
}

// S03: a branch that takes no push is asked seldom, and said so once an hour.
func TestS03ABranchThatRefusesPushesIsNotPushedInATightLoop(t *testing.T) {
	var log bytes.Buffer
	logged := func() int { return strings.Count(log.String(), "level=ERROR") }
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		pass(time.Minute)
		b.set(func(b *branch) { b.failing = true })
		w.commit(func(*model.Desired) {}) // that nothing waits for
		pass(90 * time.Minute)
		if n := b.tried(); n < 3 || n > 30 {
			t.Errorf("within 90 min it was pushed %d times, want a few", n)
		}
		if n := logged(); n != 2 {
			t.Errorf("it was said %d times in 90 min, want at once and after an hour:\n%s", n, log.String())
		}
		b.set(func(*branch) {})
		w.commit(func(d *model.Desired) { d.Add(claim("web")) }) // something waits
		pass(29 * time.Minute)
		if n := b.tried(); n > 70 {
			t.Errorf("while a claim waits it was pushed %d times within 29 min, want at most every half minute", n)
		}
		if n := logged(); n != 2 {
			t.Errorf("it was said %d times, want no more than before", n)
		}
		b.set(func(b *branch) { b.failing = false })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		b.set(func(b *branch) { b.failing = true })
		w.commit(func(*model.Desired) {})
		pass(2 * time.Minute)
		if n := logged(); n != 3 {
			t.Errorf("a new failure was said %d times, want at once", n-2)
		}
		b.set(func(b *branch) { b.failing = false })
	}, func(w *loopWorld) { w.logged, w.mirror = slog.NewTextHandler(&log, nil), true })
}

// S08: what a sensor reads, or a BMC counts, is no news.
func TestS08FlappingValuesCostNoCommit(t *testing.T) {
	published(t, 2, func(w *loopWorld, b *branch) {
		w.expect(2*time.Minute, 1, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		pass(10 * time.Minute)
		commits := b.taken()
		pass(24 * time.Hour) // with thousands of readings
		if n := b.taken() - commits; n > 0 {
			t.Errorf("a day of readings cost %d commits:\n%s", n, strings.Join(b.subjects[commits:], "\n"))
		}
	})
}

func TestRecordsAreToldAsEverWhileTextsAreRefused(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		b.set(func(b *branch) { b.bare = true })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		pass(time.Minute)
		before := b.taken()
		w.commit(func(*model.Desired) {}) // that nothing waits for
		pass(time.Minute)
		if b.taken() == before {
			t.Error("the new revision is not told within a minute")
		}
		b.set(func(b *branch) { b.bare = false })
		pass(againAfter + time.Minute)
		if n := b.tried(); n != 1 {
			t.Errorf("what was left out was offered again %d times within %v, want once", n, againAfter)
		}
	})
}

// Somebody may have deleted the branch, or set it back, while nothing changes.
func TestS06TheBranchIsLookedAtWhileNothingChanges(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(2*time.Minute, 0, "Available Off")
		b.set(func(*branch) {})
		pass(time.Hour)
		if n, most := b.tried(), int(time.Hour/againAfter); n < most-1 || n > most {
			t.Errorf("it was looked at %d times in an hour, want %d", n, most)
		}
		b.set(func(b *branch) { b.files = nil })
		commits := b.taken()
		pass(againAfter)
		if n := b.taken() - commits; n != 1 {
			t.Errorf("a branch that was deleted was written %d times within %v, want once", n, againAfter)
		}
	})
}

func TestTextsThatCannotBeToldLaterAreTriedWithPauses(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		b.set(func(b *branch) { b.bare = true })
		w.commit(func(*model.Desired) {})
		pass(time.Minute)
		b.set(func(b *branch) { b.failing = true })
		pass(againAfter + 20*time.Minute)
		if n := b.tried(); n < 3 || n > 20 {
			t.Errorf("within 20 min it was tried %d times, want a few", n)
		}
	})
}

func TestAServerThatWantsNoPushIsLeftAloneThatLong(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		pass(time.Minute)
		b.set(func(b *branch) { b.failing, b.away = true, 10*time.Minute })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(25 * time.Minute)
		if n := b.tried(); n != 3 {
			t.Errorf("asked %d times within 25 min though it said to come again in 10 min, want 3", n)
		}
	})
}

// S03: somebody has to act, and is told so, but not all the time.
func TestAServerThatRefusesTheBranchIsNotAskedInATightLoop(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		pass(time.Minute)
		b.set(func(b *branch) { b.failing, b.refuses = true, true })
		b.errors.Store(0)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) }) // which waits for the branch
		pass(3*time.Hour - time.Minute)
		if n := b.tried(); n < 30 || n > 50 {
			t.Errorf("asked %d times within three hours, want 30 to 50", n)
		}
		if n := b.errors.Load(); n != 3 {
			t.Errorf("said %d times within three hours, want once an hour", n)
		}
		b.set(func(b *branch) { b.failing = false })
		w.expect(7*time.Minute, 0, "Reserved On default/web")
		b.set(func(b *branch) { b.failing = true })
		w.commit(func(*model.Desired) {})
		pass(time.Minute)
		if n := b.errors.Load(); n != 4 {
			t.Errorf("said %d times, want anew once it is refused again", n)
		}
	}, func(w *loopWorld) { w.mirror = true })
}

func TestABindingWaitsForTheStatusBranchWhenTheStoreIsNotDurable(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Minute, 0, "Available Off")
		b.fail(true)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(5*time.Minute, 0, "Reserved Off default/web")
		b.fail(false)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	}, func(w *loopWorld) { w.mirror = true })
}

// nothingFitsMany taints servers, and adds so many claims that tolerate no taint that their status may wait.
func nothingFitsMany(d *model.Desired, servers int) {
	fleettest.AddWaiting(d, 120, nil)
	for i := range servers {
		d.Add(serverFile(i, func(s *model.Server) { s.Spec.Taints = []model.Taint{{Key: "burn-in", Effect: model.TaintNoBind}} }))
	}
}

func tolerant(c *model.ServerClaim) {
	c.Spec.Tolerations = []model.Toleration{{Operator: "Exists"}}
}

func TestADecisionDoesNotWaitForWhatManyWaitingClaimsAreTold(t *testing.T) {
	published(t, 2, func(w *loopWorld, b *branch) {
		w.expect(2*time.Minute, 1, "Available Off")
		w.commit(func(d *model.Desired) { nothingFitsMany(d, 2) })
		pass(time.Minute)
		says := func(claim, text string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return bytes.Contains(b.files["serverclaims/default/"+claim+".yaml"], []byte(text))
		}
		if !says("w00007", "2 tainted") {
			t.Fatal("a claim that nothing fits is not told why")
		}
		w.commit(func(d *model.Desired) { d.Add(claim("web", tolerant)) })
		for !says("web", "phase: Bound") {
			pass(10 * time.Millisecond)
		}
		if !says("w00007", "2 tainted") {
			t.Error("the commit that shows the binding has news of claims that wait as before")
		}
		pass(time.Minute)
		if !says("w00007", "1 Reserved, 1 tainted") {
			t.Error("a claim is not told the news in its turn")
		}
	}, func(w *loopWorld) { w.mirror = true })
}

func TestWaitingClaimsAreToldTheNewsAlthoughDecisionsFollowOneAnother(t *testing.T) {
	published(t, 8, func(w *loopWorld, b *branch) {
		w.expect(2*time.Minute, 7, "Available Off")
		w.commit(func(d *model.Desired) { nothingFitsMany(d, 8) })
		pass(time.Minute)
		w.mu.Lock()
		w.delay = time.Hour // nothing but decisions is to be told
		w.mu.Unlock()
		for i := range 6 { // one each 3 s, and an interval is 10 s
			w.commit(func(d *model.Desired) { d.Add(claim(fmt.Sprintf("web-%d", i), tolerant)) })
			pass(3 * time.Second)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if told := b.files["serverclaims/default/w00007.yaml"]; bytes.Contains(told, []byte("8 tainted")) {
			t.Errorf("after 18 s it is told what was so before:\n%s", told)
		}
	}, func(w *loopWorld) { w.mirror = true })
}

func TestRecordsComeBackFromTheStatusBranchAsTheyWere(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		in := w.loop.Input(time.Now())
		branch, problems := report.ReadBranch(rendered(t, reportBy(new(report.Projector), in)))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want := in.Observed.Records
		want.Servers, want.BMCs = decided(want.Servers), decided(want.BMCs)
		if diff := cmp.Diff(want, branch.Records); diff != "" {
			t.Errorf("restored records differ (-want +got):\n%s", diff)
		}
	})
}

func TestNoSecretReachesTheStatusBranch(t *testing.T) {
	const password, ignition = "pass-7f3a", "ignition-9c1e"
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			d.Add(&model.BMCSecret{Meta: model.Meta{Name: "s"}, Values: map[string]model.Sensitive{
				"username": model.NewSensitive("u"), "password": model.NewSensitive(password),
			}})
			d.Add(fleettest.IgnitionSecret(ignition))
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }))
		})
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		in := w.loop.Input(time.Now())
		token := model.NewTokenKey(bytes.Repeat([]byte{1}, 32)).Report(in.Observed.Servers["bmc00-system-0"].Boot.Ticket).Reveal()
		for path, data := range w.files() {
			for _, secret := range []string{password, ignition, token} {
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s shows %q", path, secret)
				}
			}
		}
	})
}

// The status branch cannot be pushed to, a person switches on the machine that a claim was bound to, and
// the store is lost: the claim must not be on two machines.
func TestAMachineIsNotInstalledBeforeItsBindingIsShown(t *testing.T) {
	published(t, 2, func(w *loopWorld, b *branch) {
		w.expect(3*time.Minute, 0, "Available Off")
		w.expect(0, 1, "Available Off")
		files := w.files()
		b.fail(true)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(time.Minute)
		w.expect(0, 0, "Reserved Off default/web")
		w.change(0, func(m *machine) { m.netFirst = true })
		go w.boot(w.machine(0)) // a person presses the button
		pass(10 * time.Minute)
		if w.seen(0).installs > 0 {
			w.t.Errorf("server 0 was installed for web before the status branch shows that it is bound")
		}
		w.loseStore(files)
		w.loop.Announced(intents(w.Observed().Servers, nil))
		pass(30 * time.Minute)
		if n := w.seen(0).installs + w.seen(1).installs; n > 1 {
			w.t.Errorf("claim web was installed %d times", n)
		}
	}, func(w *loopWorld) { w.mirror = true })
}

// A server that is kept had the claim that another one has by now: after the store is lost, both are as they were.
func TestAKeptServerAndTheClaimOfItsNameSurviveTheLossOfTheStore(t *testing.T) {
	published(t, 2, func(w *loopWorld, _ *branch) {
		keptFirst(w)
		w.commit(func(d *model.Desired) { d.Add(claim("web", onSecond)) })
		w.expect(time.Hour, 1, "Reserved On default/web")
		pass(10 * time.Minute) // until it is booted, and shown so
		w.loseStore(w.files())
		w.loop.Announced(intents(w.Observed().Servers, nil))
		pass(time.Hour)
		w.expect(0, 0, "Released Off default/web")
		w.expect(0, 1, "Reserved On default/web")
		if n := w.seen(1).installs; n != 1 || w.seen(0).disk == "" {
			w.t.Errorf("server 1 was installed %d times, and server 0 has %q on its disk", n, w.seen(0).disk)
		}
	}, func(w *loopWorld) { w.mirror = true })
}

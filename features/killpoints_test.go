package features

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// outage is how long Ingot is down once it was killed: long enough for a machine to
// meet closed ports.
const outage = time.Second

// sampledPoints is how many kill points are tried with each store unless all are asked
// for by KILLPOINTS=all.
const sampledPoints = 3

// faultProgram is the program under test with points at which it can be killed, see
// ingot/model/fault. It is built once.
var faultProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(ingotProgram), "ingot-faultpoints")
	return path, rig.Build(path, "ingot/cmd/ingot", "-tags", "faultpoints")
})

func TestKillPointsOnEmbeddedStore(t *testing.T) { killPoints(t, embeddedStore) }

func TestKillPointsOnRedis(t *testing.T) { killPoints(t, redisStore) }

func killPoints(t *testing.T, store storeKind) {
	t.Parallel()
	path := must.Get(faultProgram())(t)
	counted := filepath.Join(t.TempDir(), "points")
	must.Get(lifeOfClaim(store, path, "INGOT_FAULT_LOG="+counted))(t)
	points := must.Get(readPoints(counted))(t)
	if len(points) == 0 {
		t.Fatal("no package has a point at which the program can be killed")
	}
	t.Logf("%d points on %s", len(points), store)
	slots := make(chan struct{}, concurrency)
	sample, all := chosen(len(points), ""), chosen(len(points), os.Getenv("KILLPOINTS"))
	var missed atomic.Int64
	t.Cleanup(func() {
		if n := int(missed.Load()); n > len(all)/4 {
			t.Errorf("%d of %d points were not passed a second time: nothing is proved of them", n, len(all))
		}
	})
	for _, n := range all {
		t.Run(fmt.Sprintf("%03d %s", n, points[n-1]), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			if !slices.Contains(sample, n) {
				rig.SkipIfLate(t)
			}
			killed, err := lifeOfClaim(store, path, "INGOT_FAULT_KILL="+strconv.Itoa(n))
			if err != nil {
				t.Error(err)
			}
			if !killed { // how many points there are is up to what is written together
				missed.Add(1)
				t.Log("that point was not passed this time")
			}
		})
	}
}

// chosen are the points that are tried, from 1: all, the one that is named, or a sample.
func chosen(points int, which string) (all []int) {
	if n, err := strconv.Atoi(which); err == nil {
		return []int{min(n, points)}
	}
	step := max(1, points/sampledPoints)
	if which == "all" {
		step = 1
	}
	for n := 1 + step/2; n <= points; n += step {
		all = append(all, n)
	}
	return all
}

func readPoints(file string) (kinds []string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(data)) {
		_, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kinds = append(kinds, kind)
	}
	return kinds, err
}

// lifeOfClaim claims a server, has it restarted, and releases it, with a program that may
// kill itself once and is started again then. It returns whether it did.
func lifeOfClaim(store storeKind, program, variable string) (killed bool, err error) {
	ctx := context.Background()
	w, err := newSite("life of a claim, "+variable, store)
	if err != nil {
		return false, err
	}
	ctx = context.WithValue(ctx, siteKey{}, w)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, w.evidence())
		}
		err = errors.Join(err, w.end())
	}()
	if err := usualIntervals(ctx); err != nil {
		return false, err
	}
	if err := w.inhabit(ctx, []map[string]string{{"SERVER": "s1"}}); err != nil {
		return false, err
	}
	err = restartAs(w, program, variable)
	for _, live := range []func(context.Context) error{w.liveClaimed, w.liveRestarted, w.liveReleased} {
		if err == nil {
			err = live(ctx)
		}
	}
	return w.revived, errors.Join(err, w.audit())
}

func (w *site) liveClaimed(ctx context.Context) error {
	if err := w.claim(map[string]string{"CLAIM": "web"}); err != nil {
		return err
	}
	if err := w.commitClaims("web"); err != nil {
		return err
	}
	m := w.machines["s1"]
	return w.untilRevived(ctx, func(s summary) error {
		c, err := claimIn(s, "web")
		if err == nil && (c.State != report.ClaimBooted || m.Disk() == nil) {
			err = fmt.Errorf("claim web is %s: %s; the disk of its server holds %+v", c.State, c.Why, m.Disk())
		}
		return err
	})
}

// liveRestarted has the server restarted: once, or not at all if nobody knows whether it was.
func (w *site) liveRestarted(ctx context.Context) error {
	if err := w.describe(map[string]string{"SERVER": "s1", "OPERATION": model.OperationHardRestart + "#1"}); err != nil {
		return err
	}
	if _, err := w.repo.Commit(map[string]string{serverPath("s1"): text(w.servers["s1"])}, "restart s1"); err != nil {
		return err
	}
	return w.untilRevived(ctx, func(summary) error {
		body, err := get(ctx, "http://"+w.ingot.where.Admin+"/api/v1/servers/s1")
		if err != nil {
			return err
		}
		n, unknown := w.machines["s1"].restarts(), strings.Contains(string(body), "OutcomeUnknown")
		if n > 1 || n == 0 && !unknown {
			return fmt.Errorf("s1 was restarted %d times, and that this is unknown is said: %t", n, unknown)
		}
		return nil
	})
}

func (w *site) liveReleased(ctx context.Context) error {
	if err := removeClaims(ctx, "web"); err != nil {
		return err
	}
	m := w.machines["s1"]
	return w.untilRevived(ctx, func(s summary) error {
		if len(s.Claims) > 0 || m.Disk() != nil {
			return fmt.Errorf("there are claims %+v; the disk of s1 holds %+v", s.Claims, m.Disk())
		}
		return errors.Join(serverIn(s, "s1", "Available"), servedOnce("Ingot", s))
	})
}

func restartAs(w *site, program string, environment ...string) error {
	w.boot.open("")
	w.report.open("")
	if err := w.ingot.stop(); err != nil {
		return err
	}
	w.program, w.environment = program, environment
	if err := w.start(); err != nil {
		return w.revive()
	}
	return nil
}

// revive starts Ingot again if it was killed.
func (w *site) revive() error {
	if w.ingot != nil && w.ingot.running() {
		return nil
	}
	w.boot.open("")
	w.report.open("")
	time.Sleep(outage)
	w.environment, w.revived = nil, true
	return w.start()
}

// untilRevived is eventually with an Ingot that may be killed meanwhile.
func (w *site) untilRevived(ctx context.Context, check func(summary) error) error {
	return rig.Within(2*patience, func() error {
		if err := w.revive(); err != nil {
			return err
		}
		s, err := w.ingot.summary(ctx)
		if err != nil {
			return err
		}
		return check(s)
	})
}

func TestKillPointsAreCountedByTheBuildForTests(t *testing.T) {
	path := must.Get(faultProgram())(t)
	data := must.Get(os.ReadFile(path))(t)
	plain := must.Get(os.ReadFile(ingotProgram))(t)
	// A point that nobody calls is left out by the linker, and the variable with it.
	if variable := []byte("INGOT_FAULT_KILL"); bytes.Contains(plain, variable) {
		t.Error("the program that people run can be told to kill itself")
	} else if !bytes.Contains(data, variable) {
		t.Error("the program for tests cannot be told to kill itself")
	}
}

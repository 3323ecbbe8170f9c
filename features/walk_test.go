package features

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model"
)

// The random walk: WALK says how many histories are walked, WALK_SEED is the seed of
// the first one, to walk again what failed, WALK_PARALLEL how many are walked at once.
// After PROOFS_UNTIL, walkEnough are enough.
const (
	walkHistories = 2
	walkEnough    = 16
	walkSteps     = 14
	walkParallel  = 16
	// A history is at rest when nothing happened to a machine for a while; it is judged
	// then, or when the limit is reached.
	walkQuiet = 3 * time.Second
	walkLimit = 20 * time.Second
	// walkOpening is how long Ingot may leave a lost status branch alone: it begins one at most
	// once in a default git.interval.
	walkOpening = 75 * time.Second
	// walkEnding is how long an Ingot that was overtaken may take to end: it lets requests
	// under way come to an end first.
	walkEnding = 12 * time.Second
)

func numberFrom(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// TestWalk does to the real program whatever may be done to it, in an order that is
// left to chance, and has the bookkeeper say whether a law was broken.
func TestWalk(t *testing.T) {
	t.Parallel()
	histories := numberFrom("WALK", walkHistories)
	first := numberFrom("WALK_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d histories from seed %d", histories, first)
	slots := make(chan struct{}, numberFrom("WALK_PARALLEL", walkParallel))
	for i := range histories {
		seed := first + i
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			if i >= walkEnough {
				rig.SkipIfLate(t)
			}
			store := embeddedStore
			if seed%2 == 1 {
				store = redisStore
			}
			k, err := walkHistory(store, seed)
			if err != nil {
				t.Errorf("WALK=1 WALK_SEED=%d, on %s: %s\n%v", seed, store, strings.Join(k.steps, "; "), err)
			}
		})
	}
}

type walk struct {
	*site
	ctx    context.Context
	chance *rand.Rand
	steps  []string          // what was done
	paths  map[string]string // of the claims that Git has
	next   int               // number of the next claim
	copied bool
	// tampered says that somebody moved the status branch.
	tampered bool
	// overtaken says that a rival took over since Ingot was started: it may end with
	// exit code 4 whenever it notices.
	overtaken bool
	chosen    string // the last token of a choice between store and status branch
}

func walkHistory(store storeKind, seed int) (k *walk, err error) {
	w, err := newSite(fmt.Sprint("walk ", seed), store)
	if err != nil {
		return &walk{}, err
	}
	w.rackHost = ownHost()
	k = &walk{
		site: w, ctx: context.WithValue(context.Background(), siteKey{}, w),
		chance: rand.New(rand.NewPCG(uint64(seed), 1)), paths: make(map[string]string),
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, w.evidence())
		}
		err = errors.Join(err, w.end())
	}()
	if k.chance.IntN(2) == 0 {
		if err := usualIntervals(k.ctx); err != nil {
			return k, err
		}
	}
	if err := k.inhabit(k.ctx, []map[string]string{{"SERVER": "s1"}, {"SERVER": "s2"}, {"SERVER": "s3"}}); err != nil {
		return k, err
	}
	for range walkSteps {
		if err := k.step(); err != nil {
			return k, err
		}
	}
	return k, errors.Join(k.settle(), k.audit(), k.auditAtRest())
}

// walkStep is something that may be done. It takes weight tickets in the draw.
type walkStep struct {
	name   string
	weight int
	do     func(k *walk) error
}

var walkAll = []walkStep{
	{"claim", 6, (*walk).newClaim},
	{"remove", 3, (*walk).removeClaim},
	{"rename", 2, (*walk).rename},
	{"move file", 1, (*walk).moveFile},
	{"break file", 1, (*walk).breakFile},
	{"mend files", 1, (*walk).mendFiles},
	{"operation", 2, (*walk).operation},
	{"reprovision", 1, (*walk).reprovision},
	{"maintenance", 1, (*walk).maintenance},
	{"end maintenance", 1, (*walk).endMaintenance},
	{"approve", 2, (*walk).approve},
	{"unrelated", 2, (*walk).unrelated},
	{"force-push without a claim", 2, (*walk).forcePush},
	{"push an older head", 1, (*walk).pushOlder},
	{"another branch for a while", 1, (*walk).anotherBranch},
	{"copy store", 2, (*walk).keepStore},
	{"put store back", 2, (*walk).restoreStore},
	{"lose store", 2, (*walk).loseStore},
	{"hole in store", 1, (*walk).holeStore},
	{"block status", 1, func(k *walk) error { return protectStatus(k.ctx) }},
	{"unblock status", 2, func(k *walk) error { return unprotectStatus(k.ctx) }},
	{"set status back", 1, (*walk).statusBack},
	{"garble status", 1, (*walk).statusGarbled},
	{"lose status", 1, (*walk).loseStatus},
	{"kill", 3, (*walk).killAndWait},
	{"kill at a point", 4, (*walk).killAtPoint},
	{"restart", 1, (*walk).restart},
	{"suspend", 1, (*walk).sleeps},
	{"rival", 1, (*walk).rivalFor},
	{"power cut", 2, (*walk).cutPower},
	{"BMC fails", 1, (*walk).failBMC},
	{"BMC lies", 2, (*walk).lieBMC},
	{"BMCs are well", 2, (*walk).well},
}

func (k *walk) step() error {
	total := 0
	for _, s := range walkAll {
		total += s.weight
	}
	n := k.chance.IntN(total)
	for _, s := range walkAll {
		if n -= s.weight; n >= 0 {
			continue
		}
		k.steps = append(k.steps, s.name)
		if err := s.do(k); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		break
	}
	k.pause(2500)
	return k.up()
}

func (k *walk) pause(most int) {
	time.Sleep(time.Duration(k.chance.IntN(most)) * time.Millisecond)
}

// up starts Ingot unless it runs. One that may not start is told to take over, as its
// operator would do.
func (k *walk) up() error {
	if k.ingot != nil && k.ingot.running() {
		return nil
	}
	k.overtaken = false
	k.boot.open("")
	k.report.open("")
	if err := k.start(); err != nil {
		if again := k.takeOver(); again != nil {
			return errors.Join(err, again)
		}
	}
	return nil
}

func (k *walk) takeOver() error {
	k.steps = append(k.steps, "(take over)")
	k.arguments = []string{k.takeOverFlag()}
	defer func() { k.arguments = nil }()
	return k.start()
}

func (k *walk) down(do func() error) error {
	if err := k.kill(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	k.pause(1500)
	return k.up()
}

// settle mends what is broken and waits until nothing happens any more, with an Ingot that
// goes on.
func (k *walk) settle() error {
	if err := errors.Join(k.well(), unprotectStatus(k.ctx), k.up()); err != nil {
		return err
	}
	if k.tampered { // which is met with the next report, or after minutes if nothing changes
		k.tampered = false
		if err := k.unrelated(); err != nil {
			return err
		}
	}
	if err := rig.Within(walkOpening, k.shownAgain); err != nil {
		return err
	}
	quiet := walkQuiet
	if k.overtaken {
		quiet = walkEnding
	}
	seen, since := -1, time.Now()
	_ = rig.Within(walkLimit, func() error {
		if n := len(k.rack.Events()); n != seen {
			seen, since = n, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("something happens still")
		}
		return nil
	})
	if k.ingot.running() {
		return nil
	}
	return errors.Join(k.takeOver(), k.settle())
}

// shownAgain returns an error while an Ingot that runs does not show the status. Where the walk
// took the status branch and a part of the store, a person has to choose the store first.
func (k *walk) shownAgain() error {
	files, _ := k.statusBranch()
	if !k.ingot.running() || files[model.ReportReadme] != "" {
		return nil
	}
	text := k.log.text()
	offered := choice.FindAllStringSubmatch(text[max(0, strings.LastIndex(text, `"msg":"leading"`)):], 1)
	if len(offered) == 1 && offered[0][1] != k.chosen {
		k.steps, k.chosen = append(k.steps, "(choose)"), offered[0][1]
		return errors.Join(errors.New("a person has to choose"), approve(k.ctx, k.chosen))
	}
	return errors.New("the status branch has no README")
}

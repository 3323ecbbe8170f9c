package features

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model"
)

// The random walk: WALK says how many histories are walked, WALK_SEED is the seed of
// the first one, to walk again what failed, WALK_PARALLEL how many are walked at once.
// After PROOFS_UNTIL, walkEnough are enough.
const (
	walkHistories = 4
	walkEnough    = 16
	walkSteps     = 14
	walkParallel  = 16
	// A history is at rest when nothing happened to a machine for a while; it is judged
	// then, or when the limit is reached.
	walkQuiet = 3 * time.Second
	walkLimit = 20 * time.Second
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
				skipIfLate(t)
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

// skipIfLate skips what is left of a long proof after PROOFS_UNTIL, in seconds since
// 1970: continuous integration has an end, and says how far it came.
func skipIfLate(t *testing.T) {
	t.Helper()
	until := numberFrom("PROOFS_UNTIL", 0)
	if until > 0 && time.Now().Unix() >= int64(until) {
		t.Skip("it is later than PROOFS_UNTIL: this one is left out")
	}
}

// walk is one history.
type walk struct {
	*world
	ctx    context.Context
	chance *rand.Rand
	steps  []string          // what was done
	paths  map[string]string // of the claims that Git has
	next   int               // number of the next claim
	copied bool
	// overtaken says that a rival took over since Ingot was started: it may end with
	// exit code 4 whenever it notices.
	overtaken bool
}

func walkHistory(store storeKind, seed int) (k *walk, err error) {
	w, err := newWorld(fmt.Sprint("walk ", seed), store)
	if err != nil {
		return &walk{}, err
	}
	k = &walk{
		world: w, ctx: context.WithValue(context.Background(), worldKey{}, w),
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

// walkAll are all steps.
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
	{"lose status", 1, func(k *walk) error { return deleteStatus(k.ctx) }},
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

// step does one thing that chance chooses, and waits a moment.
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
	err := k.start()
	if err == nil {
		return nil
	}
	k.steps = append(k.steps, "(take over)")
	k.arguments = []string{"--take-over"}
	defer func() { k.arguments = nil }()
	if again := k.start(); again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// down ends Ingot, does something, and starts it.
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

// any is one of the claims that Git has, "" if it has none.
func (k *walk) any() string {
	all := sortedKeys(k.paths)
	if len(all) == 0 {
		return ""
	}
	return all[k.chance.IntN(len(all))]
}

func (k *walk) anyServer() string {
	all := sortedKeys(k.machines)
	return all[k.chance.IntN(len(all))]
}

// change commits claims as they are now.
func (k *walk) change(claims ...string) error {
	files := make(map[string]string)
	for _, c := range claims {
		files[k.paths[c]] = k.claimFile(c)
	}
	_, err := k.repo.Commit(files, "change claims")
	return err
}

func (k *walk) newClaim() error {
	k.next++
	name := fmt.Sprintf("c%d", k.next)
	row := map[string]string{"CLAIM": name}
	if k.chance.IntN(2) == 0 {
		row["SERVER"] = k.anyServer()
	}
	if err := k.claim(row); err != nil {
		return err
	}
	k.paths[name] = claimPath(name)
	return k.change(name)
}

func (k *walk) removeClaim() error {
	c := k.any()
	if c == "" {
		return nil
	}
	path := k.paths[c]
	delete(k.paths, c)
	_, err := k.repo.Remove("release "+c, path)
	return err
}

func (k *walk) rename() error {
	old := k.any()
	if old == "" {
		return nil
	}
	k.next++
	name := fmt.Sprintf("c%d", k.next)
	o := maps.Clone(k.claims[old])
	o["metadata"] = maps.Clone(o["metadata"].(map[string]any))
	o["metadata"].(map[string]any)["name"] = name
	k.claims[name] = o
	k.ignition[name] = k.ignitionOf(old)["stringData"].(map[string]any)["ignition"].(string)
	spec(o)["ignitionSecretRef"] = map[string]any{"name": name}
	k.paths[name] = k.paths[old]
	delete(k.paths, old)
	return k.change(name)
}

func (k *walk) moveFile() error {
	c := k.any()
	if c == "" {
		return nil
	}
	old := k.paths[c]
	k.next++
	k.paths[c] = fmt.Sprintf("claims/moved-%d.yaml", k.next)
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil || files[old] == "" {
		return err
	}
	// git fast-import makes one commit of one change: the file is there twice for a moment
	if _, err := k.repo.Commit(map[string]string{k.paths[c]: files[old], old: "# moved\n"}, "move "+old); err != nil {
		return err
	}
	_, err = k.repo.Remove("remove what is empty", old)
	return err
}

func (k *walk) breakFile() error {
	c := k.any()
	if c == "" {
		return nil
	}
	broken := strings.Replace(k.claimFile(c), "power:", "powr:", 1)
	_, err := k.repo.Commit(map[string]string{k.paths[c]: broken}, "break "+c)
	return err
}

func (k *walk) mendFiles() error {
	if len(k.paths) == 0 {
		return nil
	}
	return k.change(sortedKeys(k.paths)...)
}

// annotated commits a new value of an annotation of a server.
func (k *walk) annotated(server string, row map[string]string) error {
	row["SERVER"] = server
	if err := k.describe(row); err != nil {
		return err
	}
	_, err := k.repo.Commit(map[string]string{serverPath(server): text(k.servers[server])}, "change "+server)
	return err
}

func (k *walk) operation() error {
	k.next++
	all := []string{model.OperationHardRestart, model.OperationPowerCycle, model.OperationGracefulRestart}
	return k.annotated(k.anyServer(), map[string]string{"OPERATION": fmt.Sprintf("%s#%d", all[k.chance.IntN(len(all))], k.next)})
}

func (k *walk) reprovision() error {
	c := k.any()
	if c == "" {
		return nil
	}
	k.next++
	if err := k.claim(map[string]string{"CLAIM": c, "REPROVISION": fmt.Sprintf("again-%d", k.next)}); err != nil {
		return err
	}
	return k.change(c)
}

func (k *walk) maintenance() error { return commitMaintenance(k.ctx, k.anyServer(), "committed") }

func (k *walk) endMaintenance() error {
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	var all []string
	for path := range files {
		if strings.HasPrefix(path, "maintenance/") {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err = k.repo.Remove("end maintenance", all...)
	return err
}

// approve approves what the status branch lists.
func (k *walk) approve() error {
	a, err := k.approvals()
	if err != nil {
		return nil // it may be garbled just now
	}
	tokens := []string{a.Record.AbsentToken}
	for _, h := range a.Record.Holds {
		tokens = append(tokens, h.Token)
	}
	for _, token := range tokens {
		if token == "" {
			continue
		}
		if err := approve(k.ctx, token); err != nil {
			return err
		}
	}
	return nil
}

func (k *walk) unrelated() error {
	k.next++
	_, err := k.repo.Commit(map[string]string{"README.md": fmt.Sprintf("number %d\n", k.next)}, "say more")
	return err
}

func (k *walk) forcePush() error {
	c := k.any()
	path := k.paths[c]
	delete(k.paths, c)
	return k.anew(func(files map[string]string) { delete(files, path) })
}

func (k *walk) pushOlder() error {
	log, err := k.repo.ReadLog(gitBranch)
	if err != nil || len(log) < 3 {
		return err
	}
	if err := k.repo.SetBranch(gitBranch, log[1+k.chance.IntN(2)].Hash); err != nil {
		return err
	}
	files, err := k.repo.ReadBranch(gitBranch)
	for c, path := range maps.Clone(k.paths) {
		if files[path] == "" {
			delete(k.paths, c)
		}
	}
	return err
}

func (k *walk) anotherBranch() error {
	files, err := k.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	if c := k.any(); c != "" {
		delete(files, k.paths[c])
	}
	k.next++
	other := fmt.Sprintf("other-%d", k.next)
	if _, err := k.repo.CommitTo(other, files, "another branch"); err != nil {
		return err
	}
	if err := k.down(func() error { k.branch = other; return nil }); err != nil {
		return err
	}
	k.pause(3000)
	return k.down(func() error { k.branch = gitBranch; return nil })
}

func (k *walk) keepStore() error {
	k.copied = true
	return k.down(func() error { return k.withoutRedis(k.takeCopy) })
}

func (k *walk) restoreStore() error {
	if !k.copied {
		return nil
	}
	return k.down(func() error { return k.withoutRedis(k.putCopyBack) })
}

func (k *walk) loseStore() error { return k.down(k.emptyStore) }

func (k *walk) holeStore() error {
	server := k.anyServer()
	return k.down(func() error {
		_ = k.damage("loses", server) // nothing may be known of it
		return nil
	})
}

func (k *walk) statusBack() error {
	log, err := k.repo.ReadLog(statusBranch)
	if err != nil || len(log) < 2 {
		return err
	}
	return k.repo.SetBranch(statusBranch, log[1].Hash)
}

func (k *walk) statusGarbled() error {
	_, err := k.repo.CommitTo(statusBranch, map[string]string{"servers/" + k.anyServer() + ".yaml": "record: [\n"}, "garble it")
	return err
}

func (k *walk) killAndWait() error { return k.down(func() error { return nil }) }

// walkPoints is how many effects and saves after its start Ingot may be killed at.
const walkPoints = 80

// killAtPoint has Ingot kill itself at one of the effects and saves that it comes to, see
// ingot/model/fault: at one of its start, or of what it is asked for later.
func (k *walk) killAtPoint() error {
	program, err := faultProgram()
	if err != nil {
		return err
	}
	if err := k.kill(); err != nil {
		return err
	}
	n := 1 + k.chance.IntN(walkPoints)
	k.steps[len(k.steps)-1] += " " + strconv.Itoa(n)
	k.overtaken, k.program, k.environment = false, program, []string{"INGOT_FAULT_KILL=" + strconv.Itoa(n)}
	err = k.start()
	k.environment = nil
	if err != nil {
		return k.up() // it was killed before it listened
	}
	return nil
}

// killedItself reports whether a program ended so, and could not be asked for anything.
func killedItself(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return errors.Is(err, os.ErrProcessDone) || ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func (k *walk) restart() error {
	err := k.ingot.stop()
	if err != nil && !killedItself(err) && !(k.overtaken && endedWith(err, exitAnother) == nil) {
		return err
	}
	return k.up()
}

func (k *walk) sleeps() error {
	process := k.ingot.command.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil && !killedItself(err) {
		return err
	}
	k.pause(4000)
	if err := process.Signal(syscall.SIGCONT); err != nil && !killedItself(err) {
		return err
	}
	return nil
}

// rivalFor has a second Ingot run for a while, if it will.
func (k *walk) rivalFor() error {
	var arguments []string
	if k.chance.IntN(2) == 0 {
		arguments = []string{"--take-over"}
	}
	p, err := k.rival(arguments...)
	k.overtaken = k.overtaken || arguments != nil || err == nil
	if err != nil {
		return nil // as it should, while the first one lives
	}
	k.pause(4000)
	return p.kill()
}

func (k *walk) cutPower() error {
	k.machines[k.anyServer()].PowerCut()
	return nil
}

func (k *walk) failBMC() error {
	all := []sim.Fault{sim.FaultRefuse, sim.FaultServerError, sim.FaultHang, sim.FaultPowerFlaps, sim.FaultDropSessions}
	return k.suffer(k.anyServer(), all[k.chance.IntN(len(all))])
}

func (k *walk) lieBMC() error {
	m := k.machines[k.anyServer()]
	lies := []sim.Fault{sim.FaultResetFails, sim.FaultResetDropped, sim.FaultResetHangs, ""}
	what, off := lies[k.chance.IntN(len(lies))], k.chance.IntN(8)
	if err := tellTheTruth(m); err != nil {
		return err
	}
	if what != "" {
		if err := m.SetFault(what); err != nil {
			return err
		}
	}
	if off == 0 {
		return nil
	}
	return m.SetFault(sim.FaultFalseOff, sim.FaultArgs{Requests: off})
}

// well has all BMCs be well again.
func (k *walk) well() error {
	for _, m := range k.machines {
		for _, f := range m.BMC().Faults() {
			if err := m.BMC().ClearFault(f); err != nil {
				return err
			}
		}
		for _, f := range m.Faults() {
			if err := m.ClearFault(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle mends what is broken and waits until nothing happens any more.
func (k *walk) settle() error {
	if err := errors.Join(k.well(), unprotectStatus(k.ctx), k.up()); err != nil {
		return err
	}
	seen, since := -1, time.Now()
	_ = rig.Within(walkLimit, func() error {
		if n := len(k.rack.Events()); n != seen {
			seen, since = n, time.Now()
		}
		if time.Since(since) < walkQuiet {
			return errors.New("something happens still")
		}
		return nil
	})
	return k.up()
}

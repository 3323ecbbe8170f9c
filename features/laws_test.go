package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"sigs.k8s.io/yaml"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

// defineLaws defines the steps in which the laws are put to the test.
func defineLaws(sc *godog.ScenarioContext) {
	const name = `"([^"]*)"`
	for expression, do := range map[string]any{
		// history that is rewritten, and other sources
		`^the history is rewritten with claim ` + name + ` switched Off$`:                                                      rewriteOff,
		`^the branch is set back to where claim ` + name + ` was not yet$`:                                                     setBranchBack,
		`^a file that is no manifest is committed$`:                                                                            commitReadme,
		`^a file that cannot be a manifest is committed$`:                                                                      commitHello,
		`^a commit approves what is absent$`:                                                                                   approveAbsent,
		`^branch ` + name + ` has all but claim ` + name + `$`:                                                                 branchWithout,
		`^branch ` + name + ` has everything$`:                                                                                 branchWithAll,
		`^Ingot is started again for (branch|folder) ` + name + `$`:                                                            startElsewhere,
		`^Ingot is killed, its copy of the repository is lost, and it is started again$`:                                       loseCopy,
		`^Ingot is killed, the history is rewritten without claim ` + name + `, and it is started again$`:                      rewriteWhileDown,
		`^claim ` + name + ` is renamed ` + name + `$`:                                                                         renameClaim,
		`^30 files of 190 wrong claims are committed$`:                                                                         commitWrongClaims,
		`^maintenance of all servers is committed$`:                                                                            maintainAll,
		`^the guard lets (\d+) servers be switched off$`:                                                                       limitPower,
		`^the status branch need not be written first$`:                                                                        mirrorLate,
		`^the status branch shows that$`:                                                                                       statusShows,
		`^the status branch is set back by (\d+) commits$`:                                                                     setStatusBack,
		`^a file of the status branch about ` + name + ` is garbled, and Ingot is killed and started again without its store$`: garbleStatus,

		// a store that is not what it was
		`^the store is copied$`: copyStore,
		`^Ingot is killed, the copy of the store is put back, and Ingot is started again$`:      putStoreBack,
		`^Ingot is killed, store and status branch are lost, and Ingot is started again$`:       loseBoth,
		`^Ingot is killed, the store (loses|garbles) ` + name + `, and Ingot is started again$`: damageRecord,
		`^Ingot is killed, the store loses all servers, and Ingot is started again$`:            loseServers,
		`^Ingot is killed, the store's file is damaged, and Ingot is started again$`:            damageFile,
		`^the store loses ` + name + `$`:                                                    makeHole,
		`^the store takes no more$`:                                                         storeTakesNoMore,
		`^the store takes more again$`:                                                      storeTakesMore,
		`^Redis keeps nothing on disk$`:                                                     keepNothing,
		`^no BMC was asked to change anything since$`:                                       nothingAsked,
		`^a key of the store is made something else$`:                                       replaceKey,
		`^Redis and the Ingot that leads die together, and Redis comes back from its copy$`: dieTogether,
		`^the probe of a server reports 1500 neighbours$`:                                   manyNeighbours,

		// a kill that costs the store, and pushes that are refused meanwhile
		`^claim ` + name + ` is (committed|removed), and Ingot is killed once (.+) and started again without its store$`: killOnceWithoutStore,
		`^claim ` + name + ` is committed, and the status branch is protected once Ignition is served$`:                  protectOnce,
		`^the disk of one server holds claim ` + name + `$`:                                                              heldOnce,
		`^the disk of one server holds claim ` + name + `, or Ingot says that nobody knows$`:                             heldOnceOrUnknown,
		`^it is not installed anywhere else$`:                                                                            heldNowhereElse,
		`^claim ` + name + ` is not Unbound$`:                                                                            claimNotUnbound,
		`^` + name + ` was restarted (once|\d+ times)$`:                                                                  wasRestarted,
		`^Ingot is not ready because of its ` + name + `$`:                                                               notReadyFor,
		`^Ingot is not ready because of its ` + name + `, and says ` + name + `$`:                                        notReadyAndSays,
		`^the Ingot that stands by is not ready because of its ` + name + `, and says ` + name + `$`:                     standsByAndSays,
		`^the log says ` + name + `$`:                                                                                    logSays,
		`^Ingot says of server ` + name + `: ` + name + `$`:                                                              ingotSays,
		`^the metrics say since when the status branch is not written$`:                                                  metricsSayUnpublished,

		// what is larger than it should be
		`^a file of (\d+) MB and a manifest of (\d+) MB are committed along with the claims$`: commitLarge,
		`^Ingot never held more than (\d+) MB in memory$`:                                     neverHeld,

		// what the status branch says of secrets
		`^what claims? ` + name + ` boots? is shown by no digest that others could compute$`: shownKeyed,
		`^claims? ` + name + ` asks? for nothing but what is installed$`:                     askForNothingElse,
		`^Ingot is killed, the store and the seal key are lost, and Ingot is started again$`: killAndLoseKey,

		// BMCs
		`^the BMC of ` + name + ` carries out resets and (answers them with 500|drops its answers|never answers them)$`: liesOfResets,
		`^the BMC of ` + name + ` tells the truth again$`:                                                               tellsTheTruth,
		`^the BMC of ` + name + ` says (\d+) times that it is Off$`:                                                     saysOff,

		// two that act
		`^another Ingot with a store of its own is started$`:              startRival,
		`^another Ingot with a store of its own is started to take over$`: takeOver,
		`^it ends with exit code (\d+), and says ` + name + `$`:           rivalEnds,
		`^the first Ingot ends with exit code (\d+)$`:                     firstEnds,
		`^Ingot is suspended$`:                                            suspend,
		`^Ingot is suspended, and the one that stands by takes over$`:     suspendLeader,
		`^the first Ingot goes on$`:                                       resume,
	} {
		sc.Step(expression, do)
	}
}

// anew replaces the branch by one commit without a parent, which has files changed.
func (w *world) anew(change func(files map[string]string)) error {
	files, err := w.repo.ReadBranch(w.branch)
	if err != nil {
		return err
	}
	change(files)
	_, err = w.repo.ForcePush(files, "begin anew")
	return err
}

func rewriteOff(ctx context.Context, claim string) error {
	w := worldOf(ctx)
	if err := w.claim(map[string]string{"CLAIM": claim, "POWER": "Off"}); err != nil {
		return err
	}
	return w.anew(func(files map[string]string) { files[claimPath(claim)] = w.claimFile(claim) })
}

func setBranchBack(ctx context.Context, claim string) error {
	w := worldOf(ctx)
	log, err := w.repo.ReadLog(w.branch)
	if err != nil {
		return err
	}
	for _, c := range log {
		if strings.HasPrefix(c.Message, "claim servers for "+claim) {
			return w.repo.SetBranch(w.branch, c.Parents[0])
		}
	}
	return fmt.Errorf("no commit claimed a server for %s", claim)
}

func commitReadme(ctx context.Context) error {
	w := worldOf(ctx)
	commit, err := w.repo.CommitTo(w.branch, map[string]string{"README.md": "the fleet, at " + time.Now().String() + "\n"}, "say more")
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func commitHello(ctx context.Context) error {
	_, err := worldOf(ctx).repo.Commit(map[string]string{"notes.yaml": "- hello\n"}, "take a note")
	return err
}

// approvals are the tokens that the status branch shows.
type approvals struct {
	Record struct {
		AbsentToken string `json:"absentToken"`
		Absent      []struct {
			Token string `json:"token"`
		} `json:"absent"`
		Holds []struct {
			Token string `json:"token"`
		} `json:"holds"`
	} `json:"record"`
}

func (w *world) approvals() (a approvals, err error) {
	files, err := w.statusBranch()
	if err != nil {
		return a, err
	}
	return a, yaml.Unmarshal([]byte(files[model.ReportRevision]), &a)
}

func approveAbsent(ctx context.Context) error {
	var token string
	err := rig.Within(patience, func() error {
		a, err := worldOf(ctx).approvals()
		if token = a.Record.AbsentToken; err == nil && token == "" {
			err = errors.New("the status branch lists nothing that is absent")
		}
		return err
	})
	if err != nil {
		return err
	}
	return approve(ctx, token)
}

func branchWithout(ctx context.Context, branch, claim string) error {
	w := worldOf(ctx)
	files, err := w.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	delete(files, claimPath(claim))
	_, err = w.repo.CommitTo(branch, files, "another branch")
	return err
}

func branchWithAll(ctx context.Context, branch string) error {
	w := worldOf(ctx)
	return w.repo.SetBranch(branch, w.repo.Head(gitBranch))
}

func startElsewhere(ctx context.Context, what, where string) error {
	w := worldOf(ctx)
	return w.whileStopped(func() error {
		if what == "branch" {
			w.branch = where
			return nil
		}
		w.folder = where
		return nil
	})
}

// whileStopped does something while Ingot is down, having been asked to end.
func (w *world) whileStopped(do func() error) error {
	w.boot.open("")
	w.report.open("")
	if err := w.ingot.stop(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.start()
}

// whileDead does something after Ingot was killed.
func (w *world) whileDead(do func() error) error {
	if err := w.kill(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.start()
}

func loseCopy(ctx context.Context) error {
	w := worldOf(ctx)
	return w.whileDead(func() error { return os.RemoveAll(filepath.Join(w.stateDir(), "git")) })
}

func rewriteWhileDown(ctx context.Context, claim string) error {
	return worldOf(ctx).whileDead(func() error { return rewriteHistory(ctx, claim) })
}

// renameClaim gives a claim another name, in the same file, with the same Secret.
func renameClaim(ctx context.Context, old, new string) error {
	w := worldOf(ctx)
	o := maps.Clone(w.claims[old])
	o["metadata"] = maps.Clone(o["metadata"].(map[string]any))
	o["metadata"].(map[string]any)["name"] = new
	w.claims[new] = o
	_, err := w.repo.Commit(map[string]string{claimPath(old): text(o, w.ignitionOf(old))}, "rename "+old+" to "+new)
	return err
}

func commitWrongClaims(ctx context.Context) error {
	files := make(map[string]string)
	for i := range 30 {
		var all []map[string]any
		for j := range 190 {
			o := object(model.KindServerClaim, fmt.Sprintf("wrong-%d-%d", i, j), nil)
			spec(o)["powr"] = "On"
			all = append(all, o)
		}
		files[fmt.Sprintf("wrong/%02d.yaml", i)] = text(all...)
	}
	_, err := worldOf(ctx).repo.Commit(files, "add what is wrong")
	return err
}

func maintainAll(ctx context.Context) error {
	w := worldOf(ctx)
	files := make(map[string]string)
	for server := range w.servers {
		o := object(model.KindServerMaintenance, "of-"+server, nil)
		spec(o)["serverRef"] = map[string]any{"name": server}
		files["maintenance/"+server+".yaml"] = text(o)
	}
	_, err := w.repo.Commit(files, "begin maintenance of all")
	return err
}

func limitPower(ctx context.Context, n int) error {
	w := worldOf(ctx)
	return w.whileStopped(func() error {
		w.guard = fmt.Sprintf(", maxPowerDisruptions: %d", n)
		return nil
	})
}

// mirrorLate has Ingot started again with the documented way out.
func mirrorLate(ctx context.Context) error {
	w := worldOf(ctx)
	return w.whileStopped(func() error {
		w.mirrorLate = true
		return nil
	})
}

func statusShows(ctx context.Context) error {
	w := worldOf(ctx)
	return w.eventually(ctx, w.statusBranchAgrees)
}

func setStatusBack(ctx context.Context, commits int) error {
	w := worldOf(ctx)
	return w.repo.SetBranch(statusBranch, fmt.Sprintf("%s~%d", w.repo.Head(statusBranch), commits))
}

func garbleStatus(ctx context.Context, server string) error {
	w := worldOf(ctx)
	return w.whileDead(func() error {
		path := "servers/" + server + ".yaml"
		_, err := w.repo.CommitTo(statusBranch, map[string]string{path: "record: [\n"}, "garble it")
		return errors.Join(err, w.emptyStore())
	})
}

// heldBy are the machines whose disks hold a claim, by the bookkeeper.
func (w *world) heldBy(claim string) (machines []string, err error) {
	book, err := w.books()
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(w.machines) {
		if book.Disk(w.machines[name].UUID()) == claimName(claim) {
			machines = append(machines, name)
		}
	}
	return machines, nil
}

func heldOnce(ctx context.Context, claim string) error { return held(ctx, claim, false) }

// heldOnceOrUnknown is heldOnce, where a server that was bound and may have been
// installed when the store was lost is left alone until a person says which.
func heldOnceOrUnknown(ctx context.Context, claim string) error { return held(ctx, claim, true) }

func held(ctx context.Context, claim string, orUnknown bool) error {
	w := worldOf(ctx)
	err := w.eventuallyWithin(ctx, 2*patience, func(s report.Summary) error {
		c, err := claimIn(s, claim)
		if err != nil {
			return err
		}
		on, err := w.heldBy(claim)
		if orUnknown && len(on) == 0 && strings.Contains(c.Why, "nothing shows whether it was installed") {
			return err
		}
		if err == nil && (c.State == report.ClaimUnbound || len(on) != 1) {
			err = fmt.Errorf("claim %s is %s: %s; the disks of %v hold it", claim, c.State, c.Why, on)
		}
		return err
	})
	if err != nil {
		return err
	}
	return heldNowhereElse(ctx)
}

// heldNowhereElse looks again once Ingot had its chance to do something wrong.
func heldNowhereElse(ctx context.Context) error {
	w := worldOf(ctx)
	if err := w.marker(ctx, strings.Join(sortedKeys(w.machines), ",")); err != nil {
		return err
	}
	for claim := range w.claims {
		if on, err := w.heldBy(claim); err != nil || len(on) > 1 {
			return errors.Join(err, fmt.Errorf("the disks of %v hold claim %s", on, claim))
		}
	}
	return w.audit()
}

func claimNotUnbound(ctx context.Context, claim string) error {
	return worldOf(ctx).eventually(ctx, func(s report.Summary) error {
		c, err := claimIn(s, claim)
		if err == nil && c.State == report.ClaimUnbound {
			err = fmt.Errorf("claim %s is Unbound: %s", claim, c.Why)
		}
		return err
	})
}

// watched is how long it is watched that something does not happen.
const watched = 4 * time.Second

// wasRestarted counts what the machine went through, and watches that it stays at that.
func wasRestarted(ctx context.Context, name, times string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	restarts := func() error {
		if n := m.restarts(); n != count(times) {
			return fmt.Errorf("%s was restarted %d times, not %s", name, n, times)
		}
		return nil
	}
	if err := rig.Within(patience, restarts); err != nil {
		return err
	}
	return watch(restarts)
}

// restarts counts how often the machine was restarted or power-cycled.
func (m *machine) restarts() (n int) {
	for _, e := range m.Events() {
		if e.Kind == sim.EventRestart || e.Kind == sim.EventPowerOff && e.Reset == "PowerCycle" {
			n++
		}
	}
	return n
}

// notReadyFor waits until a check of /readyz fails.
func notReadyFor(ctx context.Context, check string) error {
	return notReadyAndSays(ctx, check, "")
}

func notReadyAndSays(ctx context.Context, check, says string) error {
	return worldOf(ctx).ingot.notReady(ctx, check, says)
}

func standsByAndSays(ctx context.Context, check, says string) error {
	return worldOf(ctx).second.notReady(ctx, check, says)
}

// notReady waits until a check of /readyz fails, with a text in its error.
func (p *program) notReady(ctx context.Context, check, says string) error {
	return rig.Within(patience, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.where.Admin+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		var ready struct {
			Checks []struct{ Name, Error string }
		}
		if err := json.NewDecoder(resp.Body).Decode(&ready); err != nil {
			return err
		}
		if !slices.ContainsFunc(ready.Checks, func(c struct{ Name, Error string }) bool {
			return c.Name == check && c.Error != "" && strings.Contains(c.Error, says)
		}) {
			return fmt.Errorf("/readyz does not fail for want of %s with %q: %+v", check, says, ready.Checks)
		}
		return nil
	})
}

func logSays(ctx context.Context, want string) error {
	return rig.Within(patience, func() error {
		if !strings.Contains(worldOf(ctx).log.text(), want) {
			return fmt.Errorf("the log does not say %q", want)
		}
		return nil
	})
}

// watch looks for a while whether check finds something wrong: that nothing happens has
// no event to wait for.
func watch(check func() error) error {
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func ingotSays(ctx context.Context, server, want string) error {
	w := worldOf(ctx)
	return rig.Within(patience, func() error {
		body, err := get(ctx, "http://"+w.ingot.where.Admin+"/api/v1/explain/server/"+w.called(server))
		if err == nil && !strings.Contains(string(body), want) {
			err = fmt.Errorf("Ingot does not say %q of server %s:\n%s", want, server, body)
		}
		return err
	})
}

func metricsSayUnpublished(ctx context.Context) error {
	w := worldOf(ctx)
	return rig.Within(patience, func() error {
		metrics, err := get(ctx, "http://"+w.ingot.where.Admin+"/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(metrics)) {
			if value, is := strings.CutPrefix(line, "ingot_status_unpublished_seconds "); is && strings.TrimSpace(value) != "0" {
				return nil
			}
		}
		return errors.New("ingot_status_unpublished_seconds is 0, or not there")
	})
}

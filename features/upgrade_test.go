package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/features/ledger"
	"ingot/gitsource/gitserver"
	"ingot/model"
)

// The testdata of upgrade.feature is the folder of a site that an older release left:
// state.dir or what Redis keeps, the repository with its status branch and the pushes that
// it saw, and beside these what the rack keeps and what happened to its machines. See
// testdata/upgrade/README.md.
const (
	rackFolder = "rack"
	pastFile   = "past.json"
)

// olderFleets are the files of testdata, by the store that the older release had.
var olderFleets = map[storeKind]string{
	embeddedStore: "testdata/upgrade/embedded.tar.gz",
	redisStore:    "testdata/upgrade/redis.tar.gz",
}

// olderBMCs is where the BMCs of those fleets listen. The manifests name these addresses,
// so nothing else may listen there.
var olderBMCs = map[storeKind]rackPlace{
	embeddedStore: {host: "127.94.23.1", port: 16443},
	redisStore:    {host: "127.94.23.2", port: 16443},
}

func (w *site) placeRack() {
	w.rackAt = olderBMCs[w.store]
	w.rackAt.dir = filepath.Join(w.dir, rackFolder)
}

// olderFleet unpacks the fleet that an older release left. Ingot does not run yet.
func olderFleet(ctx context.Context) error {
	w := siteOf(ctx)
	if err := os.RemoveAll(w.repo.Dir); err != nil {
		return err
	}
	if err := w.withoutRedis(func() error {
		return errors.Join(os.RemoveAll(filepath.Join(w.dir, "appendonlydir")),
			tarball("-x", "-z", "-C", w.dir, "-f", olderFleets[w.store]))
	}); err != nil {
		return err
	}
	repo, err := gitserver.New(w.dir, "fleet")
	if err != nil {
		return err
	}
	w.repo, w.commits = repo, ledger.NewReader(repo.Dir)
	repo.OnUpdate = ledger.Noter(repo.Dir)
	past, err := os.ReadFile(filepath.Join(w.dir, pastFile))
	if err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(past, &w.past), ledger.Watch(repo.Dir)); err != nil {
		return err
	}
	w.placeRack()
	servers := make([]map[string]string, 5)
	for i := range servers {
		servers[i] = map[string]string{"SERVER": fmt.Sprintf("s%d", i+1)}
	}
	// another site may have the addresses for the time being
	return rig.Within(6*patience, func() error { return w.wire(servers) })
}

func olderFleetWithoutStore(ctx context.Context) error {
	if err := olderFleet(ctx); err != nil {
		return err
	}
	return siteOf(ctx).emptyStore()
}

func startIngot(ctx context.Context) error { return siteOf(ctx).start() }

// TestOlderFleetIsKept makes the testdata of upgrade.feature anew.
func TestOlderFleetIsKept(t *testing.T) {
	program := os.Getenv("INGOT_OLDER")
	if program == "" {
		t.Skip("INGOT_OLDER names no program of an older release, of which testdata is to be made")
	}
	for store := range olderFleets {
		if err := keepOlderFleet(store, program); err != nil {
			t.Errorf("on %s: %v", store, err)
		}
	}
}

func keepOlderFleet(store storeKind, program string) (err error) {
	w, err := newSite("fleet of an older release", store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	w.program, w.bmcNetworks = program, "" // which it does not know
	w.placeRack()
	if err := w.liveAsOlder(context.WithValue(context.Background(), siteKey{}, w)); err != nil {
		return fmt.Errorf("%w\n%s", err, w.evidence())
	}
	past, err := json.Marshal(w.happenings())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, pastFile), past, 0o600); err != nil {
		return err
	}
	kept := []string{rackFolder, pastFile, filepath.Base(w.repo.Dir), filepath.Base(w.stateDir())}
	if w.redis != nil {
		kept = append(kept, "appendonlydir")
	}
	return w.withoutRedis(func() error {
		return tarball(append([]string{
			"-c", "-z", "-C", w.dir, "--owner=0", "--group=0", "--exclude=*.sample", "--exclude=state/images", "-f", olderFleets[store],
		}, kept...)...)
	})
}

// liveAsOlder brings a fleet to where upgrade.feature finds it, and stops Ingot.
func (w *site) liveAsOlder(ctx context.Context) error {
	if err := w.inhabit(ctx, []map[string]string{
		{"SERVER": "s1"}, {"SERVER": "s2"}, {"SERVER": "s3"}, {"SERVER": "s4"},
		{"SERVER": "s5", "RUNS": "somebody's work", "STATE": string(model.StateInitial)},
	}); err != nil {
		return err
	}
	if err := claimsRunOn(ctx, "web, db, past", "s1, s2, s3"); err != nil {
		return err
	}
	boots := len(w.machines["s2"].Boots())
	for _, row := range []map[string]string{
		{"SERVER": "s2", "OPERATION": model.OperationPowerCycle + "#1"},
		{"SERVER": "s3", "RECLAIM": string(model.ReclaimRetain)},
	} {
		if err := w.describe(row); err != nil {
			return err
		}
		files := map[string]string{serverPath(row["SERVER"]): text(w.servers[row["SERVER"]])}
		if _, err := w.repo.Commit(files, "change "+row["SERVER"]); err != nil {
			return err
		}
	}
	if err := rig.Within(patience, func() error {
		all := w.machines["s2"].Boots()
		if len(all) == boots || all[len(all)-1].Outcome != sim.OutcomeDisk {
			return errors.New("s2 was not power-cycled")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := removeClaims(ctx, "past"); err != nil {
		return err
	}
	if err := errors.Join(
		serversAre(ctx, "s3", string(model.StateReleased)),
		claimIsOn(ctx, "db", "Booted", "s2"),
		w.lookedAt(sortedKeys(w.bmcs)...),
	); err != nil {
		return err
	}
	head := w.repo.Head(gitBranch)
	if err := errors.Join(w.statusHolds(model.ReportRevision, head), w.statusHolds("servers/s3.yaml", "state: Released")); err != nil {
		return err
	}
	return w.ingot.stop()
}

// tarball runs tar(1).
func tarball(arguments ...string) error {
	if out, err := exec.Command("tar", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return nil
}

package features

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cucumber/godog"

	"ingot/model"
)

// endScenario checks what holds after every scenario, and takes its site down.
// When anything failed it shows what is needed to find out why.
func endScenario(ctx context.Context, sc *godog.Scenario, stepErr error) (context.Context, error) {
	w, _ := ctx.Value(siteKey{}).(*site)
	if w == nil {
		return ctx, nil
	}
	var err error
	if stepErr == nil {
		err = w.invariants(ctx)
	} else {
		err = w.audit() // what was expected may fail because of what was done
	}
	if why := errors.Join(stepErr, err); why != nil {
		fmt.Fprintf(os.Stderr, "\n%s (on %s, seed %d): %v\n%s\n", sc.Name, w.store, w.seed, why, w.evidence())
		failed.Lock()
		failed.why = append(failed.why, fmt.Sprintf("%s: %s (on %s, seed %d): %v", sc.Uri, sc.Name, w.store, w.seed, why))
		failed.Unlock()
	}
	return ctx, errors.Join(err, w.end())
}

func (w *site) invariants(ctx context.Context) error {
	if w.ingot == nil {
		return nil
	}
	if !w.ingot.running() {
		return fmt.Errorf("ingot ended by itself: %w", w.ingot.err)
	}
	var agrees error
	if !w.protected.Load() { // else it cannot
		agrees = w.eventually(ctx, w.statusBranchAgrees)
	}
	return errors.Join(agrees, w.noSecretSeen(ctx), w.audit(), w.auditAtRest())
}

// servedOnce looks for a claim that has two servers, by who says so.
func servedOnce(who string, s summary) error {
	on := make(map[model.ClaimName]string)
	for _, x := range s.Servers {
		if x.Claim == "" || x.State == string(model.StateReleased) { // it had the claim, which another server may have now
			continue
		}
		if other, taken := on[x.Claim]; taken {
			return fmt.Errorf("%s has claim %s on two servers, %s and %s", who, x.Claim, other, x.Name)
		}
		on[x.Claim] = x.Name
	}
	return nil
}

// noSecretSeen looks for secrets where people look, and in the store (law 5).
func (w *site) noSecretSeen(ctx context.Context) error {
	places, err := w.statusBranch()
	if err != nil {
		return err
	}
	places["the log"] = w.log.text()
	metrics, err := w.ingot.get(ctx, "/metrics")
	if err != nil {
		return err
	}
	places["the metrics"] = string(metrics)
	if err := w.readStore(places); err != nil {
		return err
	}
	secrets := slices.Concat([]string{bmcPassword, wrongPassword, claimSecret}, w.boot.tokens(), w.report.tokens())
	for place, text := range places {
		for i, s := range secrets {
			if strings.Contains(text, s) {
				return fmt.Errorf("%s shows secret %d", place, i)
			}
		}
	}
	return nil
}

func (w *site) readStore(places map[string]string) error {
	pattern := filepath.Join(w.stateDir(), "ingot.db")
	if w.redis != nil {
		pattern = filepath.Join(w.dir, "appendonlydir", "*")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("the store has no file at %s", pattern)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		places[f] = string(data)
	}
	return nil
}

func (w *site) evidence() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- log of ingot, its end\n%s\n", w.log.last(60))
	for _, name := range sortedKeys(w.machines) {
		m := w.machines[name]
		if len(w.machines) > 8 {
			break
		}
		fmt.Fprintf(&b, "--- machine %s: %+v, before %+v\n", name, m.facts(), w.noted[name])
		for _, e := range m.Events() {
			fmt.Fprintf(&b, "%s %s\n", e.At.Format("05.000"), e.What)
		}
	}
	files, err := w.statusBranch()
	if err != nil {
		fmt.Fprintf(&b, "--- status branch: %v\n", err)
	}
	fmt.Fprintf(&b, "--- status branch\n%s\n%s%s\n", files[model.ReportReadme], files[model.ReportFleet], files[model.ReportFleet])
	return b.String()
}

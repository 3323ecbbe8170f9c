package features

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ingot/model"
)

// pushDisturbance pushes two commits at once. The first removes claim "web", switches claim
// "db" Off, takes s3 into maintenance, restarts s4, and changes the address and the password of
// every BMC and the Secret of every claim. The second undoes all of that.
func pushDisturbance(ctx context.Context, before, disturbing, undoing string) error {
	w := siteOf(ctx)
	clone := filepath.Join(w.dir, "clone")
	git := func(args ...string) (string, error) {
		out, err := gitIn(ctx, clone, append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
		return strings.TrimSpace(out), err
	}
	if _, err := gitIn(ctx, w.dir, "clone", "--quiet", "--no-local", w.repo.Dir, clone); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(filepath.Join(clone, claimPath("web"))), w.disturb(clone)); err != nil {
		return err
	}
	commits := map[string]string{}
	for _, step := range []struct {
		name string
		git  []string
	}{
		{before, []string{"status", "--short"}},
		{disturbing, []string{"commit", "--quiet", "--all", "-m", "disturb every server"}},
		{undoing, []string{"revert", "--no-edit", "HEAD"}},
	} {
		if step.name == disturbing {
			if _, err := git("add", "--all"); err != nil {
				return err
			}
		}
		if _, err := git(step.git...); err != nil {
			return err
		}
		hash, err := git("rev-parse", "HEAD")
		if err != nil {
			return err
		}
		commits[step.name] = hash
	}
	if _, err := git("push", "--quiet", "origin", gitBranch); err != nil {
		return err
	}
	w.heads = commits
	if err := w.applied(ctx, commits[undoing]); err != nil {
		return err
	}
	// A store that is lost before the push loses the decision to apply this commit.
	return w.statusHolds(model.ReportFleet, "lastAppliedRevision: "+gitBranch+"@sha1:"+commits[undoing])
}

func (w *site) disturb(clone string) error {
	db, s4 := w.claimFile("db"), text(w.servers["s4"])
	maintenance := object(model.KindServerMaintenance, "of-s3", nil)
	spec(maintenance)["serverRef"] = map[string]any{"name": "s3"}
	files := map[string]string{
		claimPath("db"):       strings.ReplaceAll(strings.Replace(db, "power: \"On\"", "power: \"Off\"", 1), claimSecret, "replayed-"+claimSecret),
		claimPath("shop"):     strings.ReplaceAll(w.claimFile("shop"), claimSecret, "replayed-"+claimSecret),
		serverPath("s4"):      strings.Replace(s4, "annotations: {}", "annotations: {"+model.AnnotationOperation+": "+model.OperationPowerCycle+"#1}", 1),
		"maintenance/s3.yaml": text(maintenance),
	}
	for name := range w.bmcs {
		files[bmcPath(name)] = strings.NewReplacer("127.0.0.1", "127.0.0.2", bmcPassword, "old-"+bmcPassword).Replace(w.bmcFile(name, nil))
	}
	for path, content := range files {
		old, _ := os.ReadFile(filepath.Join(clone, path))
		if string(old) == content {
			return fmt.Errorf("%s does not change:\n%s", path, content)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(clone, path)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(clone, path), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func showCommit(ctx context.Context, name string) error {
	w := siteOf(ctx)
	return w.repo.SetBranch(w.branch, w.heads[name])
}

func ignoredAsOlder(ctx context.Context, name string) error {
	w := siteOf(ctx)
	return w.eventually(ctx, func(s summary) error {
		if s.Trouble == nil || s.Trouble.Reason != model.SourceOlder || !strings.Contains(s.Trouble.Message, w.heads[name]+"; ") &&
			!strings.Contains(s.Trouble.Message, w.heads[name]+", ") {
			return fmt.Errorf("the source is %+v, want %s of %s", s.Trouble, model.SourceOlder, w.heads[name])
		}
		return nil
	})
}

func commitInForce(ctx context.Context, name string) error {
	w := siteOf(ctx)
	return w.eventually(ctx, func(s summary) error {
		if s.Trouble != nil && s.Trouble.Reason == model.SourceOlder || s.Applied.Commit() != w.heads[name] {
			return fmt.Errorf("revision %s is in force, the source is %+v; want %s", s.Applied, s.Trouble, w.heads[name])
		}
		return nil
	})
}

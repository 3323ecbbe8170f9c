package features

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"sigs.k8s.io/yaml"

	"ingot/features/internal/rig"
	"ingot/model"
)

const copiedHead = "copied-status"

func copyBoth(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		return errors.Join(w.takeCopy(), w.repo.SetBranch(copiedHead, w.repo.Head(statusBranch)))
	})
}

func putBothBack(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		return errors.Join(w.putCopyBack(), w.repo.SetBranch(statusBranch, w.repo.Head(copiedHead)), w.age(time.Hour))
	})
}

// age has both store and status branch be as old as that, as for a clock that is ahead: no Ingot lived since.
func (w *site) age(by time.Duration) error {
	then := time.Now().Add(-by)
	err := w.editStore(func(tx *bolt.Tx) error {
		return errors.Join(edit(tx, "marks", func(m *model.Marks) { m.Alive = then }), edit(tx, "fleet", func(f *model.FleetRecord) {
			for i := range f.Done {
				f.Done[i].At = f.Done[i].At.Add(-by)
			}
		}))
	})
	return errors.Join(err, w.commitAgain("", then))
}

func edit[V any](tx *bolt.Tx, bucket string, change func(*V)) error {
	b, value := tx.Bucket([]byte(bucket)), new(V)
	if err := json.Unmarshal(b.Get([]byte(bucket)), value); err != nil {
		return err
	}
	change(value)
	raw, err := json.Marshal(value)
	return errors.Join(err, b.Put([]byte(bucket), raw))
}

// startAhead starts Ingot with a clock that is ahead of all that it has recorded.
func startAhead(ctx context.Context, hours int) error {
	w := siteOf(ctx)
	return w.whileDead(func() error { return w.age(time.Duration(hours) * time.Hour) })
}

// commitAgain makes the head of the status branch again, without a file, as of a time, with its trailers.
func (w *site) commitAgain(without string, at time.Time) error {
	index := "GIT_INDEX_FILE=" + filepath.Join(w.dir, "index")
	git := func(args ...string) string {
		out, err := w.gitWith([]string{index, "GIT_COMMITTER_DATE=" + at.Format(time.RFC3339)}, args...)
		if err != nil {
			panic(err)
		}
		return strings.TrimSpace(out)
	}
	head := w.repo.Head(statusBranch)
	git("read-tree", head)
	if without != "" {
		git("update-index", "--force-remove", without)
	}
	message := filepath.Join(w.dir, "message")
	if err := os.WriteFile(message, []byte(git("log", "-1", "--format=%B", head)+"\n"), 0o600); err != nil {
		return err
	}
	return w.repo.SetBranch(statusBranch, git("commit-tree", git("write-tree"), "-p", head+"~1", "-F", message))
}

func (w *site) gitWith(env []string, args ...string) (string, error) {
	c := exec.Command("git", append([]string{"--git-dir", w.repo.Dir, "--work-tree", w.dir, "-c", "user.name=Ingot", "-c", "user.email=ingot@localhost"}, args...)...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func approveFound(ctx context.Context) error {
	return approveShown(ctx, func(fleet string) (string, error) {
		var doc struct {
			Decided model.FleetRecord `json:"decided"`
		}
		err := yaml.Unmarshal([]byte(fleet), &doc)
		return doc.Decided.GapToken, err
	})
}

func switchAllOn(ctx context.Context, minutes int) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		for _, m := range w.machines {
			m.PowerReturns()
		}
		return w.age(time.Duration(minutes) * time.Minute)
	})
}

func allAre(ctx context.Context, power model.Power) error {
	w := siteOf(ctx)
	return rig.Within(2*patience, func() error {
		for _, name := range slices.Sorted(maps.Keys(w.machines)) {
			if p := w.machines[name].Power(); p != power {
				return fmt.Errorf("%s is powered %s", name, p)
			}
		}
		return nil
	})
}

func allOff(ctx context.Context) error { return allAre(ctx, model.PowerOff) }

func allFound(ctx context.Context) error {
	w := siteOf(ctx)
	err := rig.Within(2*patience, func() error {
		shown, err := w.statusBranch()
		for _, name := range slices.Sorted(maps.Keys(w.machines)) {
			if text := shown[serverPath(w.called(name))]; err == nil && !strings.Contains(text, string(model.ReasonFoundRunning)) {
				err = fmt.Errorf("it is not said of %s that it was found running: %s", name, text)
			}
		}
		return err
	})
	return errors.Join(err, allAre(ctx, model.PowerOn))
}

func allOffOnceApproved(ctx context.Context) error {
	return errors.Join(allFound(ctx), approveFound(ctx), allOff(ctx))
}

func editOut(ctx context.Context, lost, server string) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		err := w.commitAgain(serverPath(w.called(server)), time.Now())
		if lost != "" {
			err = errors.Join(err, w.emptyStore())
		}
		return err
	})
}

func replaceStatus(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		if err := deleteStatus(ctx); err != nil {
			return err
		}
		_, err := w.repo.CommitTo(statusBranch, map[string]string{"README.md": "another's branch\n"}, "another's")
		return err
	})
}

var choice = regexp.MustCompile(`Ingot-Approve: (\w+) for the (store|status branch)`)

func chooseCopy(ctx context.Context, which string) error {
	for _, found := range choice.FindAllStringSubmatch(siteOf(ctx).log.text(), -1) {
		if found[2] == which {
			return approve(ctx, found[1])
		}
	}
	return fmt.Errorf("the log shows no line that chooses the %s", which)
}

func (w *site) copiedState() string { return filepath.Join(w.dir, "copied-state") }

func startCopy(ctx context.Context) error {
	w := siteOf(ctx)
	dir := w.copiedState()
	if err := replicate(w.stateDir(), dir); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dir, "seal.key"), 0o600); err != nil {
		return err
	}
	p, err := w.launch("copy.yaml", dir)
	if err == nil {
		w.succeed(p)
	}
	return err
}

// staysEnded starts the Ingot that has ended, and then the other one again.
func staysEnded(ctx context.Context, code int) error {
	w := siteOf(ctx)
	if err := w.kill(); err != nil {
		return err
	}
	deposed, how := w.launch("ingot.yaml", w.stateDir())
	if deposed != nil {
		var err error
		if how, err = deposed.awaitEnd(); err != nil {
			return err
		}
	}
	p, err := w.launch("copy.yaml", w.copiedState())
	if err != nil {
		return err
	}
	w.ingot = p
	w.admit()
	return endedWith(how, code)
}

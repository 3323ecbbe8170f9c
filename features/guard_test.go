package features

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/features/internal/rig"
	"ingot/model"
)

// approvals are the tokens that the status branch shows.
type approvals struct {
	Decided struct {
		AbsentToken string `json:"absentToken"`
		Absent      []struct {
			Token string `json:"token"`
		} `json:"absent"`
		Holds []struct {
			Token string `json:"token"`
		} `json:"holds"`
	} `json:"decided"`
}

func (w *site) approvals() (a approvals, err error) {
	files, err := w.statusBranch()
	if err != nil {
		return a, err
	}
	return a, yaml.Unmarshal([]byte(files[model.ReportFleet]), &a)
}

// approveShown approves with a token of the status branch, once it is there.
func approveShown(ctx context.Context, find func(fleet string) (token string, err error)) error {
	var token string
	err := rig.Within(patience, func() error {
		files, err := siteOf(ctx).statusBranch()
		if err == nil {
			token, err = find(files[model.ReportFleet])
		}
		if err == nil && token == "" {
			err = fmt.Errorf("the status branch has no token to approve with:\n%s", files[model.ReportFleet])
		}
		return err
	})
	if err != nil {
		return err
	}
	return approve(ctx, token)
}

func approveAbsent(ctx context.Context) error {
	return approveShown(ctx, func(fleet string) (string, error) {
		var a approvals
		err := yaml.Unmarshal([]byte(fleet), &a)
		return a.Decided.AbsentToken, err
	})
}

func limitPower(ctx context.Context, n int) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		w.guard = fmt.Sprintf(", maxPowerDisruptions: %d", n)
		return nil
	})
}

// limitBoot starts Ingot again with a limit of a boot, which is half of that of a discovery.
func limitBoot(ctx context.Context, seconds int) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		w.discovery = fmt.Sprintf(", timeout: %ds", 2*seconds)
		return nil
	})
}

// approveHeld approves with the line that the status branch shows. It may come a
// moment after the servers' files say that they are held.
func approveHeld(ctx context.Context) error {
	return approveShown(ctx, func(fleet string) (string, error) {
		token, _ := approvalLine(fleet)
		return token, nil
	})
}

// approvalLine is the token of the first line to approve with, as a person would copy it.
func approvalLine(text string) (token string, found bool) {
	for line := range strings.Lines(text) {
		if _, token, found = strings.Cut(line, "Ingot-Approve: "); found {
			return strings.Trim(strings.TrimSpace(token), `"'`), true
		}
	}
	return "", false
}

func approve(ctx context.Context, hash string) error {
	return siteOf(ctx).commit(map[string]string{"approved.txt": hash + "\n"}, "let it happen\n\nIngot-Approve: "+hash+"\n")
}

// inClone repeats something in an updated clone until it succeeds.
func inClone(ctx context.Context, do func(dir string) error) error {
	dir, err := siteOf(ctx).clone(ctx)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if _, err := gitIn(ctx, dir, "pull", "--quiet"); err != nil {
			return err
		}
		return do(dir)
	})
}

func approveInClone(ctx context.Context) error {
	return inClone(ctx, func(dir string) error {
		out, err := runIngot(ctx, dir, "approve", "--yes", "--push")
		if err == nil && strings.Count(out, "powered off, wiped and free") != len(siteOf(ctx).claims) {
			err = fmt.Errorf("ingot approve does not list each server as wiped:\n%s", out)
		}
		return err
	})
}

// refuseInClone reads the list and runs the command that it shows.
func refuseInClone(ctx context.Context) error {
	return inClone(ctx, func(dir string) error {
		_, shown := runIngot(ctx, dir, "approve") // an error, because the question is not answered
		command := regexp.MustCompile(`git revert ([0-9a-f]+)`).FindStringSubmatch(fmt.Sprint(shown))
		if command == nil {
			return fmt.Errorf("ingot approve does not show how to refuse: %w", shown)
		}
		if _, err := gitIn(ctx, dir, "revert", "--no-edit", command[1]); err != nil {
			return err
		}
		_, err := gitIn(ctx, dir, "push", "--quiet")
		return err
	})
}

func (w *site) clone(ctx context.Context) (dir string, err error) {
	if dir, err = os.MkdirTemp(w.dir, "clone-"); err != nil {
		return "", err
	}
	if _, err := gitIn(ctx, dir, "clone", "--quiet", "--no-local", w.repo.Dir, "."); err != nil {
		return "", err
	}
	_, err = gitIn(ctx, dir, "config", "user.name", "Ada")
	if err == nil {
		_, err = gitIn(ctx, dir, "config", "user.email", "ada@example.com")
	}
	return dir, err
}

func gitIn(ctx context.Context, dir string, args ...string) (string, error) {
	return runIn(ctx, dir, "git", args...)
}

func runIngot(ctx context.Context, dir string, args ...string) (string, error) {
	return runIn(ctx, dir, ingotProgram, args...)
}

func runIn(ctx context.Context, dir, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), args[0], err, out)
	}
	return string(out), nil
}

func guardHolds(ctx context.Context, n int) error {
	w := siteOf(ctx)
	err := w.eventually(ctx, func(s summary) error {
		held := 0
		for _, g := range s.Decided.Holds {
			held += len(g.Steps)
		}
		if held != n {
			return fmt.Errorf("the guard holds %+v", s.Decided.Holds)
		}
		return nil
	})
	return errors.Join(err, w.statusHolds(model.ReportFleet, "Ingot-Approve: "))
}

func guardHoldsNothing(ctx context.Context) error {
	return siteOf(ctx).eventually(ctx, func(s summary) error {
		if len(s.Decided.Holds) > 0 {
			return fmt.Errorf("the guard holds %+v", s.Decided.Holds)
		}
		return nil
	})
}

package features

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/preview"
)

func propose(ctx context.Context, change func(dir string) error) error {
	w := siteOf(ctx)
	w.proposal = filepath.Join(w.dir, "proposal")
	if err := os.RemoveAll(w.proposal); err != nil {
		return err
	}
	// Ingot pushes meanwhile: files that are linked as they are may be gone by then.
	if _, err := gitAs(w.dir, "clone", "--quiet", "--no-local", w.repo.Dir, w.proposal); err != nil {
		return err
	}
	if err := change(w.proposal); err != nil {
		return err
	}
	for _, args := range [][]string{{"checkout", "--quiet", "-B", "proposal"}, {"add", "--all"}, {"commit", "--quiet", "--allow-empty", "--message", "propose it"}} {
		if _, err := gitAs(w.proposal, args...); err != nil {
			return err
		}
	}
	return nil
}

func gitAs(dir string, args ...string) (string, error) {
	who := []string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com"}
	out, err := exec.Command("git", append(who, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func proposeTable(ctx context.Context, what string, table *godog.Table) error {
	if what == "claims" {
		return proposeClaims(ctx, table)
	}
	return proposeCommits(ctx, table)
}

func proposeClaims(ctx context.Context, table *godog.Table) error {
	if err := known(table, "CLAIM", "SERVER", "IMAGE", "POWER", "REPROVISION", "CLEANUP", "BOOT", "CONFIGURED BY"); err != nil {
		return err
	}
	return propose(ctx, func(dir string) error {
		w := siteOf(ctx)
		for _, row := range rows(table) {
			if err := w.claim(row); err != nil {
				return err
			}
			if err := writeIn(dir, claimPath(row["CLAIM"]), w.claimFile(row["CLAIM"])); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeIn(dir, path, content string) error {
	file := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}

func proposeRemoval(ctx context.Context, list string) error {
	return propose(ctx, func(dir string) error {
		var errs []error
		for _, c := range names(list) {
			errs = append(errs, os.Remove(filepath.Join(dir, claimPath(c))))
		}
		return errors.Join(errs...)
	})
}

func proposeFolder(ctx context.Context) error {
	return propose(ctx, func(dir string) error {
		return os.Rename(filepath.Join(dir, "claims"), filepath.Join(dir, "berlin"))
	})
}

func proposeBroken(ctx context.Context, claim string) error {
	return proposeReplaced(ctx, claim, "power:", "powr:")
}

func proposeNamespace(ctx context.Context, claim, namespace string) error {
	return proposeReplaced(ctx, claim, "namespace: default", "namespace: "+namespace)
}

func proposeReplaced(ctx context.Context, claim, from, to string) error {
	return propose(ctx, func(dir string) error {
		file := filepath.Join(dir, claimPath(claim))
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, []byte(strings.ReplaceAll(string(content), from, to)), 0o644)
	})
}

func proposeRevert(ctx context.Context) error {
	return propose(ctx, func(dir string) error {
		_, err := gitAs(dir, "revert", "--no-commit", "HEAD")
		return err
	})
}

// proposeCommits makes a commit for each row: it removes the manifest of a claim, and adds one that is LIKE that of
// another. FROM and TO are tenants, below whose folders it does so.
func proposeCommits(ctx context.Context, table *godog.Table) error {
	if err := known(table, "REMOVES", "FROM", "ADDS", "TO", "LIKE", "HANDED TO"); err != nil {
		return err
	}
	return propose(ctx, func(dir string) error {
		w := siteOf(ctx)
		if _, err := gitAs(dir, "checkout", "--quiet", "-b", "proposal"); err != nil {
			return err
		}
		for i, row := range rows(table) {
			if claim := row["REMOVES"]; claim != "" {
				if err := os.Remove(filepath.Join(dir, pathBelow(row["FROM"], claim))); err != nil {
					return err
				}
			}
			if claim := row["ADDS"]; claim != "" {
				like := cmp.Or(row["LIKE"], claim)
				_, short := model.SplitName(claimName(claim))
				o := renamed(w.claims[like], short)
				if to := row["HANDED TO"]; to != "" {
					annotate(o, model.AnnotationHandOverTo, tenant{name: to}.folder())
				}
				w.claims[claim] = o
				if err := writeIn(dir, pathBelow(row["TO"], claim), text(o, w.ignitionOf(like))); err != nil {
					return err
				}
			}
			if i+1 == len(table.Rows)-1 {
				return nil // propose commits the last one
			}
			for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--message", fmt.Sprint("propose commit ", i+1)}} {
				if _, err := gitAs(dir, args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pathBelow is the file of a claim below the folder of a tenant, if one is named.
func pathBelow(tenantName, claim string) string {
	if tenantName == "" {
		return claimPath(claim)
	}
	return tenant{name: tenantName}.folder() + "/taken.yaml"
}

// mergeProposal merges as the buttons of a forge do. All commits arrive at once.
func mergeProposal(ctx context.Context, how string) error {
	dir := siteOf(ctx).proposal
	steps := map[string][][]string{
		" as one commit":       {{"merge", "--quiet", "--squash", "proposal"}, {"commit", "--quiet", "--message", "squash"}},
		" with a merge commit": {{"merge", "--quiet", "--no-ff", "--no-edit", "proposal"}},
		" commit by commit":    {{"rebase", "--quiet", "--onto", gitBranch, "origin/" + gitBranch, "proposal"}, {"checkout", "--quiet", "-B", gitBranch}},
	}[how]
	if how != "" {
		steps = append([][]string{{"fetch", "--quiet", "origin"}, {"checkout", "--quiet", "-B", gitBranch, "origin/" + gitBranch}}, steps...)
	}
	for _, args := range append(steps, []string{"push", "--quiet", "origin", "HEAD:" + gitBranch}) {
		if _, err := gitAs(dir, args...); err != nil {
			return err
		}
	}
	return nil
}

func runPlan(ctx context.Context, args ...string) (out string, code int, err error) {
	w := siteOf(ctx)
	if _, err := gitAs(w.proposal, "fetch", "--quiet", "origin"); err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, ingotProgram, append([]string{"plan"}, args...)...)
	cmd.Dir, cmd.Env = w.proposal, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
	text, err := cmd.Output()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text) + string(exited.Stderr), exited.ExitCode(), nil
	}
	return string(text), 0, err
}

var planCodes = map[preview.Verdict]int{preview.Nothing: 0, preview.Changes: 2, preview.Destructive: 3, preview.Wrong: 1}

// planned is what "ingot plan" says once that is of a verdict.
func planned(ctx context.Context, verdict string) (p preview.Preview, err error) {
	out, code, err := runPlan(ctx, "--output", "json")
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		return p, fmt.Errorf("ingot plan said %q: %w", out, err)
	}
	if want := preview.Verdict(verdict); p.Verdict != want || code != planCodes[want] {
		return p, fmt.Errorf("the plan is %s, and its exit code %d:\n%s", p.Verdict, code, out)
	}
	return p, nil
}

func planIs(ctx context.Context, verdict string) error {
	return rig.Within(patience, func() error {
		_, err := planned(ctx, verdict)
		return err
	})
}

func planHas(ctx context.Context, verdict string, table *godog.Table) error {
	if err := known(table, "EFFECT", "SERVER", "CLAIM", "HELD"); err != nil {
		return err
	}
	w := siteOf(ctx)
	var want []string
	for _, row := range rows(table) {
		claim := row["CLAIM"]
		if claim != "" {
			claim = string(claimName(claim))
		}
		want = append(want, strings.Join([]string{row["EFFECT"], w.called(row["SERVER"]), claim, row["HELD"]}, " "))
	}
	slices.Sort(want)
	return rig.Within(patience, func() error {
		p, err := planned(ctx, verdict)
		if err != nil {
			return err
		}
		var got []string
		for _, e := range p.Effects {
			held := map[bool]string{true: "yes"}[e.Held]
			got = append(got, strings.Join([]string{string(e.Kind), string(e.Server), string(e.Claim), held}, " "))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the plan says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

func planSays(ctx context.Context, of, want string) error {
	w := siteOf(ctx)
	args := map[string][]string{
		"clone": nil, "comment": {"--output", "markdown"}, "configuration": {"--config", filepath.Join(w.dir, "ingot.yaml"), "--head", "proposal"},
	}[of]
	if of == "configuration" {
		if _, err := gitAs(w.proposal, "push", "--quiet", "--force", "origin", "HEAD:proposal"); err != nil {
			return err
		}
	}
	return rig.Within(patience, func() error {
		out, _, err := runPlan(ctx, args...)
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("the plan does not say %q:\n%s", want, out)
		}
		return err
	})
}

package features

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// anew replaces the branch by one commit without a parent, which has files changed.
func (w *site) anew(change func(files map[string]string)) error {
	files, err := w.repo.ReadBranch(w.branch)
	if err != nil {
		return err
	}
	change(files)
	_, err = w.repo.ForcePush(files, "begin anew")
	return err
}

func rewriteOff(ctx context.Context, claim string) error {
	w := siteOf(ctx)
	if err := w.claim(map[string]string{"CLAIM": claim, "POWER": "Off"}); err != nil {
		return err
	}
	return w.anew(func(files map[string]string) { files[claimPath(claim)] = w.claimFile(claim) })
}

func setBranchBack(ctx context.Context, claim string) error {
	w := siteOf(ctx)
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
	w := siteOf(ctx)
	commit, err := w.repo.CommitTo(w.branch, map[string]string{"README.md": "the fleet, at " + time.Now().String() + "\n"}, "say more")
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

func commitHello(ctx context.Context) error {
	return siteOf(ctx).commit(map[string]string{"notes.yaml": "- hello\n"}, "take a note")
}

func branchHas(ctx context.Context, branch, claim string) error {
	w := siteOf(ctx)
	if claim == "" {
		return w.repo.SetBranch(branch, w.repo.Head(gitBranch))
	}
	files, err := w.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	delete(files, claimPath(claim))
	_, err = w.repo.CommitTo(branch, files, "another branch")
	return err
}

func rewriteWhileDown(ctx context.Context, claim string) error {
	return siteOf(ctx).whileDead(func() error { return rewriteHistory(ctx, claim) })
}

// renameClaims gives claims other names in one commit.
func renameClaims(ctx context.Context, old, new string) error {
	w := siteOf(ctx)
	files := make(map[string]string)
	claims := maps.Clone(w.claims)
	for i, to := range names(new) {
		from := names(old)[i]
		claims[to] = renamed(w.claims[from], to)
		files[claimPath(from)] = text(claims[to], w.ignitionOf(from))
	}
	w.claims = claims
	return w.commit(files, "rename "+old+" to "+new)
}

func renamed(claim map[string]any, name string) map[string]any {
	o := maps.Clone(claim)
	meta := maps.Clone(o["metadata"].(map[string]any))
	if a, ok := meta["annotations"].(map[string]any); ok {
		meta["annotations"] = maps.Clone(a)
	}
	o["metadata"], meta["name"] = meta, name
	return o
}

// loseFile empties or moves the file of a claim, as a tool that fails does.
func loseFile(ctx context.Context, claim, how string) error {
	w := siteOf(ctx)
	file, message := claimPath(claim), "the file of "+claim+" "+how
	var err error
	switch how {
	case "is emptied":
		_, err = w.repo.Commit(map[string]string{file: "# nothing is left\n"}, message)
	case "becomes a folder":
		_, err = w.repo.Change(map[string]string{file + "/README.md": "hello\n"}, message, file)
	case "moves to a hidden folder":
		_, err = w.repo.Move(message, file, "."+file)
	default:
		_, err = w.repo.Remove(message, file)
	}
	return err
}

func loseCopy(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileDead(func() error { return os.RemoveAll(filepath.Join(w.stateDir(), "git")) })
}

func emptyRepository(ctx context.Context) error {
	_, err := siteOf(ctx).repo.Clear("remove everything")
	return err
}

func rewriteHistory(ctx context.Context, claim string) error {
	return siteOf(ctx).anew(func(files map[string]string) { delete(files, claimPath(claim)) })
}

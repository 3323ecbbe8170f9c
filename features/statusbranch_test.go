package features

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

func (w *site) statusBranch() (map[string]string, error) {
	shown := make(map[string]string)
	files, err := w.repo.ReadBranch(statusBranch)
	maps.Copy(shown, files)
	return shown, err
}

// restoreWithoutBranch has Ingot started again with the documented way out.
func restoreWithoutBranch(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		w.unread = true
		return nil
	})
}

func statusShows(ctx context.Context) error {
	w := siteOf(ctx)
	return w.eventually(ctx, w.statusBranchAgrees)
}

func setStatusBack(ctx context.Context, commits int) error {
	w := siteOf(ctx)
	return w.repo.SetBranch(statusBranch, fmt.Sprintf("%s~%d", w.repo.Head(statusBranch), commits))
}

func garbleStatus(ctx context.Context, server string) error {
	w := siteOf(ctx)
	return w.whileDead(func() error {
		path := "servers/" + server + ".yaml"
		_, err := w.repo.CommitTo(statusBranch, map[string]string{path: "decided: [\n"}, "garble it")
		return errors.Join(err, w.emptyStore())
	})
}

func foreignCommit(ctx context.Context) error {
	files := map[string]string{foreignFile: "I was here\n", model.ReportReadme: "all is well\n"}
	_, err := siteOf(ctx).repo.CommitTo(statusBranch, files, "look at me")
	return err
}

// foreignFile is what somebody else puts onto the status branch.
const foreignFile = "servers/foreign.yaml"

func deleteStatus(ctx context.Context) error { return siteOf(ctx).repo.DeleteBranch(statusBranch) }

func protectStatus(ctx context.Context) error {
	siteOf(ctx).protected.Store(true)
	return siteOf(ctx).repo.Hook("update", `case "$1" in refs/heads/status) echo "this branch is protected" >&2; exit 1;; esac`)
}

func unprotectStatus(ctx context.Context) error {
	siteOf(ctx).protected.Store(false)
	return siteOf(ctx).repo.Hook("update", "exit 0")
}

func (w *site) statusHolds(path, want string) error {
	return rig.Within(patience, func() error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		if !strings.Contains(unfolded(files[path]), want) {
			return fmt.Errorf("%s of the status branch does not say %q:\n%s", path, want, files[path])
		}
		return nil
	})
}

func unfolded(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func statusSaysOf(ctx context.Context, kind, name, want string) error {
	folder := map[string]string{
		"server": "servers/", "claim": "serverclaims/", "BMC": "bmcs/", "endpoint": "endpoints/",
		"boot configuration": "serverbootconfigurations/",
	}[kind]
	w := siteOf(ctx)
	if name = w.called(name); kind == "claim" || kind == "boot configuration" {
		name = string(claimName(name))
	}
	return w.statusHolds(folder+name+".yaml", strings.ReplaceAll(want, `\"`, `"`))
}

func statusSays(ctx context.Context, what, want string) error {
	path := map[string]string{
		"problems": model.ReportFleet, "revision": model.ReportFleet, "README": model.ReportReadme,
		"picture of the racks": model.ReportRacks + "racks.svg",
	}[what]
	return siteOf(ctx).statusHolds(path, want)
}

func historySays(ctx context.Context, want string) error {
	return rig.Within(patience, func() error {
		log, err := siteOf(ctx).repo.ReadLog(statusBranch)
		if err != nil {
			return err
		}
		var told []string
		for _, c := range log {
			for line := range strings.Lines(c.Message) {
				if strings.TrimSpace(line) == want {
					return nil
				}
			}
			told = append(told, c.Message)
		}
		return fmt.Errorf("no commit says %q:\n%s", want, strings.Join(told, "\n---\n"))
	})
}

func statusOmits(ctx context.Context, claim string) error {
	return rig.Within(patience, func() error {
		files, err := siteOf(ctx).statusBranch()
		if err != nil {
			return err
		}
		for path, text := range files {
			if path == model.ReportFleet {
				continue // where the guard's list of the last hour names it
			}
			if strings.Contains(path, "/"+claim+".yaml") || strings.Contains(text, "default/"+claim) {
				return fmt.Errorf("%s of the status branch mentions claim %s", path, claim)
			}
		}
		return nil
	})
}

func isForgotten(ctx context.Context, server string) error {
	w := siteOf(ctx)
	return w.eventually(ctx, func(s summary) error {
		for _, known := range s.Servers {
			if string(known.Name) == server {
				return fmt.Errorf("server %s is %s: %s", server, known.State, known.Why)
			}
		}
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		if files["servers/"+server+".yaml"] != "" {
			return fmt.Errorf("the status branch shows server %s", server)
		}
		return nil
	})
}

func statusIsOurs(ctx context.Context) error {
	w := siteOf(ctx)
	return w.eventually(ctx, func(s summary) error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		if files[foreignFile] != "" {
			return fmt.Errorf("the status branch still shows %s; it has %v", foreignFile, slices.Sorted(maps.Keys(files)))
		}
		return w.statusBranchAgrees(s)
	})
}

func statusStays(ctx context.Context) error {
	w := siteOf(ctx)
	if now := w.repo.Head(statusBranch); now != w.statusHead {
		return fmt.Errorf("the status branch moved from %s to %s", w.statusHead, now)
	}
	return nil
}

func (w *site) statusBranchAgrees(now summary) error {
	if head := w.repo.Head(statusBranch); head != w.shownAt {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		content := make(map[string][]byte, len(files))
		for path, text := range files {
			content[path] = []byte(text)
		}
		docs, err := report.ReadDocuments(content)
		if err != nil {
			return err
		}
		w.shown = summary{Fleet: *docs.Fleet, Servers: objectsOf(docs.List(report.Servers)), Claims: objectsOf(docs.ClaimsInGit())}
		w.shownAt = head
	}
	shown := w.shown
	if err := errors.Join(servedOnce("the status branch", shown), servedOnce("Ingot", now)); err != nil {
		return err
	}
	if a, b := gist(shown), gist(now); a != b {
		return fmt.Errorf("the status branch shows\n%s\nbut Ingot says\n%s", a, b)
	}
	return nil
}

// gist is what of a summary does not change from one moment to the next.
func gist(s summary) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Applied)
	for _, x := range s.Servers {
		fmt.Fprintln(&b, x.Name, x.State, x.Power, x.Claim)
	}
	for _, x := range s.Claims {
		fmt.Fprintln(&b, x.Name, x.State, x.Server)
	}
	return b.String()
}

package features

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

func commitBMC(ctx context.Context, name, what string) error {
	w := worldOf(ctx)
	if what == "removed" {
		_, err := w.repo.Remove("remove BMC "+name, bmcPath(name))
		return err
	}
	_, err := w.repo.Commit(map[string]string{bmcPath(name): w.bmcFile(name, nil)}, "add BMC "+name)
	return err
}

func commitServers(ctx context.Context, table *godog.Table) error {
	if err := known(table, "SERVER", "RACK", "CORDONED", "RECLAIM", "TAINT", "OPERATION", "DISCOVER", "DISKS", "MACS", "BEHIND"); err != nil {
		return err
	}
	w := worldOf(ctx)
	files := make(map[string]string)
	for _, row := range rows(table) {
		if err := w.describe(row); err != nil {
			return err
		}
		files[serverPath(row["SERVER"])] = text(w.servers[row["SERVER"]])
	}
	commit, err := w.repo.Commit(files, "change servers")
	if err != nil {
		return err
	}
	return w.applied(ctx, commit)
}

// applied waits until Ingot plans with a commit, or with one after it.
func (w *world) applied(ctx context.Context, commit string) error {
	return w.eventually(ctx, func(s report.Summary) error {
		if !strings.HasSuffix(string(s.Revision), commit) {
			return fmt.Errorf("revision %s is in force, not yet %s", s.Revision, commit)
		}
		return nil
	})
}

func commitClaims(ctx context.Context, table *godog.Table) error {
	if err := known(table, "CLAIM", "SERVER", "RACK", "TOLERATES", "POWER", "PRIORITY", "REPROVISION", "BOOTED", "IMAGE"); err != nil {
		return err
	}
	w := worldOf(ctx)
	var changed []string
	for _, row := range rows(table) {
		if err := w.claim(row); err != nil {
			return err
		}
		changed = append(changed, row["CLAIM"])
	}
	return w.commitClaims(changed...)
}

func commitManyClaims(ctx context.Context, n int) error {
	w := worldOf(ctx)
	var all []string
	for i := range n {
		name := fmt.Sprintf("claim-%03d", i)
		if err := w.claim(map[string]string{"CLAIM": name}); err != nil {
			return err
		}
		all = append(all, name)
	}
	return w.commitClaims(all...)
}

func (w *world) commitClaims(claims ...string) error {
	files := make(map[string]string)
	for _, c := range claims {
		files[claimPath(c)] = w.claimFile(c)
	}
	_, err := w.repo.Commit(files, "claim servers for "+strings.Join(claims, ", "))
	return err
}

func removeClaims(ctx context.Context, list string) error {
	var paths []string
	for _, c := range names(list) {
		paths = append(paths, claimPath(c))
	}
	_, err := worldOf(ctx).repo.Remove("release "+list, paths...)
	return err
}

// commitBroken commits a claim with a field that is none.
func commitBroken(ctx context.Context, name string) error {
	w := worldOf(ctx)
	if err := w.claim(map[string]string{"CLAIM": name}); err != nil {
		return err
	}
	broken := strings.Replace(w.claimFile(name), "power:", "powr:", 1)
	_, err := w.repo.Commit(map[string]string{claimPath(name): broken}, "change "+name)
	return err
}

func commitTwice(ctx context.Context, name, server string) error {
	w := worldOf(ctx)
	o := maps.Clone(w.claims[name])
	o["spec"] = maps.Clone(spec(o))
	spec(o)["serverRef"] = map[string]any{"name": server}
	_, err := w.repo.Commit(map[string]string{"claims/again/" + name + ".yaml": text(o)}, "claim it again")
	return err
}

func commitMaintenance(ctx context.Context, server, what string) error {
	w := worldOf(ctx)
	path := "maintenance/" + server + ".yaml"
	if what == "removed" {
		_, err := w.repo.Remove("end maintenance of "+server, path)
		return err
	}
	o := object(model.KindServerMaintenance, "of-"+server, nil)
	spec(o)["serverRef"] = map[string]any{"name": server}
	spec(o)["policy"] = "Enforced"
	_, err := w.repo.Commit(map[string]string{path: text(o)}, "begin maintenance of "+server)
	return err
}

func emptyRepository(ctx context.Context) error {
	_, err := worldOf(ctx).repo.Clear("remove everything")
	return err
}

func rewriteHistory(ctx context.Context, claim string) error {
	w := worldOf(ctx)
	files, err := w.repo.ReadBranch(gitBranch)
	if err != nil {
		return err
	}
	delete(files, claimPath(claim))
	_, err = w.repo.ForcePush(files, "begin anew")
	return err
}

// gitBranch is the branch that Ingot follows, statusBranch the one it writes.
const (
	gitBranch    = "main"
	statusBranch = "status"
)

// approveHeld approves with the line that the status branch shows. It may come a
// moment after the servers' files say that they are held.
func approveHeld(ctx context.Context) error {
	w := worldOf(ctx)
	var token string
	err := rig.Within(patience, func() error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		var found bool
		if token, found = approvalLine(files[model.ReportRevision]); !found {
			return fmt.Errorf("the status branch shows no line to approve with:\n%s", files[model.ReportRevision])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return approve(ctx, token)
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
	_, err := worldOf(ctx).repo.Commit(map[string]string{"approved.txt": hash + "\n"}, "let it happen\n\nIngot-Approve: "+hash+"\n")
	return err
}

func foreignCommit(ctx context.Context) error {
	_, err := worldOf(ctx).repo.CommitTo(statusBranch, map[string]string{foreignFile: "I was here\n", model.ReportReadme: "all is well\n"}, "look at me")
	return err
}

// foreignFile is what somebody else puts onto the status branch.
const foreignFile = "servers/foreign.yaml"

func deleteStatus(ctx context.Context) error { return worldOf(ctx).repo.DeleteBranch(statusBranch) }

func protectStatus(ctx context.Context) error {
	worldOf(ctx).protected.Store(true)
	return worldOf(ctx).repo.Hook("update", `case "$1" in refs/heads/status) echo "this branch is protected" >&2; exit 1;; esac`)
}

func unprotectStatus(ctx context.Context) error {
	worldOf(ctx).protected.Store(false)
	return worldOf(ctx).repo.Hook("update", "exit 0")
}

// count reads "once" and "2 times".
func count(times string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(times, " times"))
	if err != nil {
		return 1
	}
	return n
}

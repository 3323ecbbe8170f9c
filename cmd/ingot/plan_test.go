package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/model/must"
)

// TestAPlanSaysWhatBranchIsWatched makes a plan for a branch that Ingot does not look at, and for the one
// that it does.
func TestAPlanSaysWhatBranchIsWatched(t *testing.T) {
	w := newApproveWorld(t, "observedRevision: main@sha1:COMMIT\ndecided:\n  applied: {branch: main, path: ., commit: COMMIT}\n")
	w.git("push", "--quiet", "origin", "HEAD:refs/heads/feature")
	w.git("fetch", "--quiet", "origin")
	w.claims("web")
	for base, want := range map[string]bool{"origin/main": false, "main": false, w.commit: false, "origin/feature": true, "feature": true} {
		out := w.plan("--base", base)
		if !strings.Contains(out, "merging ") || strings.Contains(out, "Ingot watches main, not "+base) != want {
			t.Errorf("with base %s it says\n%s", base, out)
		}
	}
}

func TestAPlanSaysWhichApprovalIsOfNothing(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	w.claims("web")
	w.git("push", "--quiet", "origin", "HEAD:main")
	w.git("commit", "--quiet", "--allow-empty", "-m", "approve", "-m", "Ingot-Approve: aaaaaaaaaaaaaaaaaaaa\nIngot-Approve: gone")
	if out := w.plan(); strings.Contains(out, "aaaa approves nothing") || !strings.Contains(out, "Ingot-Approve: gone approves nothing that") {
		t.Error(out)
	}
}

func (w *approveWorld) claims(name string) {
	w.t.Helper()
	claim := "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: " + name + "}\nspec: {power: \"On\", image: \"os:1\"}\n"
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, name+".yaml"), []byte(claim), 0o600))
	w.git("add", "--all")
	w.git("commit", "--quiet", "-m", "claim")
}

func (w *approveWorld) plan(args ...string) string {
	var b bytes.Buffer
	execute(w.t.Context(), append([]string{"plan", "--repository", w.dir}, args...), &console{in: strings.NewReader(""), out: &b, err: &b})
	return b.String()
}

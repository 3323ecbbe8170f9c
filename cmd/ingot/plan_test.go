package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPlanSaysWhatBranchIsWatched makes a plan for a branch that Ingot does not look at, and for the one
// that it does.
func TestAPlanSaysWhatBranchIsWatched(t *testing.T) {
	w := newApproveWorld(t, "observedRevision: main@sha1:COMMIT\nrecord:\n  applied: {branch: main, path: ., commit: COMMIT}\n")
	w.git("push", "--quiet", "origin", "HEAD:refs/heads/feature")
	w.git("fetch", "--quiet", "origin")
	claim := "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web}\nspec: {power: \"On\", image: \"os:1\"}\n"
	if err := os.WriteFile(filepath.Join(w.dir, "web.yaml"), []byte(claim), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "-m", "claim")
	for base, want := range map[string]bool{"origin/main": false, "main": false, w.commit: false, "origin/feature": true, "feature": true} {
		var b bytes.Buffer
		execute(t.Context(), []string{"plan", "--repository", w.dir, "--base", base}, &console{in: strings.NewReader(""), out: &b, err: &b})
		if !strings.Contains(b.String(), "merging ") || strings.Contains(b.String(), "Ingot watches main, not "+base) != want {
			t.Errorf("with base %s it says\n%s", base, b.String())
		}
	}
}

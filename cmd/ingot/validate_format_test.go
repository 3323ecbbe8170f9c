package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

func found(files ...string) []finding {
	check := newManifestCheck(false)
	for i := 0; i < len(files); i += 2 {
		check.file(files[i], []byte(files[i+1]), false)
	}
	return check.finish(&manifestSearch{}).Problems
}

const claimWithSlip = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: web}
spec: {powr: "On", power: "On", image: "linux:1"}
`

func TestAFindingKeepsItsFingerprint(t *testing.T) {
	before := fingerprints(found("a.yaml", claimWithSlip))
	for name, manifest := range map[string]string{
		"when its line moves":                          "\n# a comment\n" + claimWithSlip,
		"when what its object has besides is in order": claimWithSlip[:len(claimWithSlip)-2] + ", tolerations: []}\n",
	} {
		if after := fingerprints(found("a.yaml", manifest)); len(before) != 1 || !slices.Equal(before, after) {
			t.Errorf("%s: %v before, %v after", name, before, after)
		}
	}
}

func TestNoTwoFindingsHaveOneFingerprint(t *testing.T) {
	twice := "- no manifest\n---\n- nor this\n---\n" + claimWithSlip + "---\n" + claimWithSlip
	findings := found("a.yaml", twice, "b.yaml", twice)
	prints := fingerprints(findings)
	slices.Sort(prints)
	if len(prints) < 8 || len(slices.Compact(prints)) != len(findings) {
		t.Errorf("%d findings have the fingerprints %v", len(findings), prints)
	}
}

func TestFilesAreNamedFromTheRootOfTheirRepository(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(root, "fleet", "rack"), 0o755))
	// A worktree and a submodule have a file where others have a folder.
	must.Do(t, os.WriteFile(filepath.Join(root, ".git"), []byte("gitdir: elsewhere\n"), 0o644))
	t.Chdir(filepath.Join(root, "fleet"))
	for file, want := range map[string]string{
		"a.yaml":              "fleet/a.yaml",
		"rack/a.yaml":         "fleet/rack/a.yaml",
		"../a.yaml":           "a.yaml",
		root + "/rack/a.yaml": "rack/a.yaml",
		outside + "/a.yaml":   outside + "/a.yaml",
		"standard input":      "",
	} {
		if got := repositoryPath(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

func TestEveryFindingHasAKnownRule(t *testing.T) {
	known := make(map[model.Rule]bool)
	for _, r := range model.Rules {
		known[r.Rule] = true
	}
	seen := make(map[model.Rule]bool)
	files, err := filepath.Glob("../../model/testdata/broken/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		for _, f := range found(file, string(data), "twice/"+file, string(data)) {
			seen[f.Rule] = true
			if !known[f.Rule] {
				t.Errorf("%s has the rule %q, which model.Rules lacks", f.String(), f.Rule)
			}
		}
	}
	seen[model.RuleTenant] = true // needs tenants
	docs := must.Get(os.ReadFile("../../docs/manifests.md"))(t)
	for _, r := range model.Rules {
		if line := fmt.Sprintf("| `%s` | %s |\n", r.Rule, r.About); !strings.Contains(string(docs), line) {
			t.Errorf("docs/manifests.md lacks the line %s", line)
		}
	}
	for rule := range known {
		if !seen[rule] {
			t.Errorf("nothing has the rule %s", rule)
		}
	}
}

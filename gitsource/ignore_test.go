package gitsource

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ingot/model/must"
)

// TestWhatIsIgnored is the table of what an ignore file leaves out, by the rules of
// gitignore(5).
func TestWhatIsIgnored(t *testing.T) {
	t.Parallel()
	rules := Ignore{}.With(".", []byte("\xef\xbb\xbf# comment\n\n/renovate.json\ncharts/\r\n*.tmpl.yaml\n!keep.tmpl.yaml\ndocs/**/*.yaml\n"))
	rules = rules.With("fleet", []byte("old/\n/local.yaml\n"))
	tests := map[string]bool{
		"renovate.json":           true,
		"fleet/renovate.json":     false,
		"charts/a/values.yaml":    true,
		"fleet/charts/a.yaml":     true,
		"fleet/x.tmpl.yaml":       true,
		"fleet/keep.tmpl.yaml":    false,
		"docs/a/b/c.yaml":         true,
		"fleet/old/web.yaml":      true,
		"old/web.yaml":            false,
		"fleet/local.yaml":        true,
		"fleet/a/local.yaml":      false,
		"fleet/# comment":         false,
		"fleet/claims/web-1.yaml": false,
	}
	for file, want := range tests {
		if got := rules.Ignores(file, false); got != want {
			t.Errorf("%s: ignored %v, want %v", file, got, want)
		}
	}
	many := Ignore{}.With(".", []byte(strings.Repeat("x.yaml\n", maxPatterns)+"last.yaml\n"))
	if many.Ignores("last.yaml", false) {
		t.Error("more patterns count than there may be")
	}
	if below := many.With("a", []byte("b.yaml\n")); below.Ignores("a/b.yaml", false) || !below.Ignores("a/x.yaml", false) {
		t.Error("patterns of folders below one another count beyond what there may be for a file")
	}
}

func TestPatternsIgnoreWhatGitIgnores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runGit(t, dir, "init", "--quiet")
	files := []string{
		"a.yaml", "b.yaml", "!.yaml", "x/a.yaml", "x/b.yaml", "x/y/a.yaml", "[!a].yaml", "Z.yaml", "7.yaml", "-.yaml", "].yaml", "[.yaml", "^.yaml",
		":.yaml", "_.yaml", " .yaml", "\t.yaml", "\\.yaml", "\x01.yaml", "d.yaml", "a7.yaml", "7]",
	}
	for _, pattern := range []string{
		"[!a].yaml", "[^a].yaml", "/[!ab].yaml", `\[!a].yaml`, "[a!].yaml", "x/[!y]*", "/**", "**", "**/a.yaml", "x/**", "/x/**/a.yaml", "*.yaml", "[a-b].yaml",
		"/**\n!a.yaml", "/*\n!/**", `\!.yaml`, "!a.yaml", "[!!].yaml",
		`[\]].yaml`, `[\\].yaml`, `[a\-d].yaml`, "[a", "[", "[^]",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(pattern+"\n"), 0o600))
		rules := Ignore{}.With(".", []byte(pattern+"\n"))
		cmd := exec.CommandContext(t.Context(), "git", "-C", dir, "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Stdin = strings.NewReader("./" + strings.Join(files, "\x00./"))
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code > 1 {
			t.Fatalf("git check-ignore with pattern %q: %v", pattern, err)
		}
		ignored := strings.Split(string(out), "\x00")
		for _, file := range files {
			got := rules.Ignores(file, false)
			for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
				got = got || rules.Ignores(folder, true) // which is not searched then
			}
			if want := slices.Contains(ignored, "./"+file); got != want {
				t.Errorf("pattern %q, file %s: ignored %v, and by git %v", pattern, file, got, want)
			}
		}
	}
}

func TestIgnoredFiles(t *testing.T) {
	t.Parallel()
	file := func(name, content string) map[string]string { return map[string]string{name: content} }
	two := map[string]string{"web.yaml": claimYAML("web", "a"), "db/db.yaml": claimYAML("db", "a")}
	both, web := map[string]string{"web": "a", "db": "a"}, map[string]string{"web": "a"}
	const stays = "is left out by .ingotignore, but what it defined is in force and stays so"
	tests := map[string]sourceTest{
		"what an ignore file names is not read": {steps: []stage{
			{
				do: commit(map[string]string{
					"web.yaml": claimYAML("web", "a"), "charts/x.yaml": broken, "a/values.yaml": broken,
					".ingotignore": "charts/\n", "a/.ingotignore": "values.yaml\n",
				}),
				claims: web,
			},
			{do: commit(file("b/values.yaml", broken)), problem: "b/values.yaml: syntax error", claims: web},
			{do: commit(file(".ingotignore", "/b\ncharts\n")), claims: web},
		}},
		"an ignore file above the path counts, one beside it does not": {path: "fleet", steps: []stage{
			{do: commit(map[string]string{
				"fleet/web.yaml": claimYAML("web", "a"), "fleet/db.yaml": claimYAML("db", "a"), "fleet/x.yaml": broken,
				".ingotignore": "x.yaml\n", "other/.ingotignore": "db.yaml\n",
			}), claims: both},
		}},
		"the same folder is read where it is not ignored": {steps: []stage{
			{do: commit(map[string]string{
				"a/x/old/web.yaml": claimYAML("web", "a"), "b/x/old/web.yaml": claimYAML("web", "a"), ".ingotignore": "a/x/old\n",
			}), claims: web},
		}},
		"a pattern takes nothing away that is in force": {steps: []stage{
			{do: commit(two), claims: both},
			{do: commit(file(".ingotignore", "db\n")), problem: "db/db.yaml: " + stays, claims: both},
			{do: nothing, reopen: true, stays: true, problem: "db/db.yaml: " + stays, claims: both},
			{do: commit(file("web.yaml", claimYAML("web", "b"))), problem: stays, claims: map[string]string{"web": "b", "db": "a"}},
			{do: commit(file("db/db.yaml", claimYAML("db", "c"))), problem: stays, claims: map[string]string{"web": "b", "db": "a"}},
			{do: commit(file(".ingotignore", "")), claims: map[string]string{"web": "b", "db": "c"}},
			{do: commit(file(".ingotignore", "db.yaml\n")), problem: stays, claims: map[string]string{"web": "b", "db": "c"}},
			{do: remove("db/db.yaml"), claims: map[string]string{"web": "b"}},
		}},
		"a removal beside a file that is left out is a removal": {steps: []stage{
			{do: commit(two), claims: both},
			{do: commit(file(".ingotignore", "db\n")), problem: stays, claims: both},
			{do: remove("web.yaml"), problem: stays, claims: map[string]string{"db": "a"}},
		}},
		"so is one in the same push": {steps: []stage{
			{do: commit(two), claims: both},
			{do: func(t *testing.T, r *servedRepo) {
				commit(map[string]string{".ingotignore": "db\n", "db/db.yaml": claimYAML("db", "b")})(t, r)
				remove("web.yaml")(t, r)
			}, problem: stays, claims: map[string]string{"db": "a"}},
		}},
		"nothing is taken back in out of a folder that is left out": {steps: []stage{
			{do: commit(two), claims: both},
			{do: commit(map[string]string{".ingotignore": "db\n!db.yaml\n", "db/x.yaml": broken}), problem: "db/db.yaml: " + stays, claims: both},
		}},
		"what is moved to where it is ignored is taken away": {steps: []stage{
			{do: commit(two), claims: both},
			{do: commit(map[string]string{".ingotignore": "archive/\n", "archive/db.yaml": claimYAML("db", "a")}), claims: both},
			{do: remove("db/db.yaml"), claims: web},
		}},
		"an ignore file that is a link is refused": {steps: []stage{
			{do: commit(map[string]string{"web.yaml": claimYAML("web", "a")}), claims: web},
			{do: link(".ingotignore", "120000", "web.yaml"), problem: ".ingotignore: is a symbolic link, which is not followed", claims: web},
		}},
		"another program's settings are passed over": {steps: []stage{
			{do: commit(map[string]string{
				"web.yaml": claimYAML("web", "a"), "renovate.json": `{"extends": ["config:recommended"]}`, "mkdocs.yml": "site_name: x\n",
			}), claims: web},
		}},
		"a manifest that is overwritten by other settings stays in force": {steps: []stage{
			{do: commit(two), claims: both},
			{do: commit(file("db/db.yaml", "broken: 1\n")), problem: "db/db.yaml: no kind", claims: both},
			{do: nothing, reopen: true, stays: true, problem: "db/db.yaml: no kind", claims: both},
			{do: remove("db/db.yaml"), claims: web},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { tt.run(t) })
	}
}

// TestIgnoredFilesAreNoLoad holds that what is ignored counts for no limit.
func TestIgnoredFilesAreNoLoad(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	files := map[string]string{"web.yaml": claimYAML("web", "a"), ".ingotignore": "many/\n"}
	for i := range 20 {
		files[fmt.Sprintf("many/%d.yaml", i)] = claimYAML(fmt.Sprintf("c%d", i), "a")
	}
	commit(files)(t, repo)
	s := newSource(t, testOptions(t, repo.URL()))
	s.reader.files = 10
	if got := claims(mustSync(t, s)); len(got) != 1 {
		t.Errorf("claims %v, want web alone; problems:\n%s", got, messages(s.Desired()))
	}
}

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/daemon/config"
)

// userOfGit makes a user known to git for one test.
func userOfGit(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(file, []byte("[user]\n\tname = Ada\n\temail = ada@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", file)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if !entry.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestANewRepositoryIsValidCommittedAndFollowed(t *testing.T) {
	userOfGit(t)
	dir := t.TempDir()
	fleet := filepath.Join(dir, "fleet")
	for name, forge := range map[string]string{
		"github": ".github/workflows/ingot.yaml", "gitlab": ".gitlab-ci.yml", "forgejo": ".forgejo/workflows/ingot.yaml", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			defer os.RemoveAll(fleet)
			defer os.Remove(filepath.Join(dir, "ingot.yaml"))
			stdout, stderr, code := command(t, "init", fleet, "--url", "git@git.example.com:infra/fleet.git", "--forge", name, "--owner", "@ops/metal")
			if code != exitFine {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
			want := []string{
				".gitignore", ".ingotignore", "CODEOWNERS", "README.md", "bmcs/example.yaml", "claims/default/example.yaml",
				"maintenances/example.yaml", "servers/example.yaml",
			}
			if forge != "" {
				want = append(want, forge)
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, filesBelow(t, fleet)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			committed, err := exec.CommandContext(t.Context(), "git", "-C", fleet, "ls-files").Output()
			if diff := cmp.Diff(want, strings.Fields(string(committed))); diff != "" || err != nil {
				t.Errorf("committed: %v, -want +got:\n%s", err, diff)
			}
			if stdout, stderr, code := command(t, "validate", "--strict-secrets", fleet); code != exitFine {
				t.Errorf("validate: exit code %d\n%s%s", code, stdout, stderr)
			}
			opts, err := config.Load(filepath.Join(dir, "ingot.yaml"), nil)
			if err != nil || opts.Git.URL != "git@git.example.com:infra/fleet.git" {
				t.Errorf("configuration: %v, git.url %s", err, opts.Git.URL)
			}
			owners, _ := os.ReadFile(filepath.Join(fleet, "CODEOWNERS"))
			if !strings.Contains(string(owners), "\n* @ops/metal\n") {
				t.Errorf("CODEOWNERS:\n%s", owners)
			}
		})
	}
}

func TestTheConfigurationOfANewRepositoryNamesTheDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ingot.yaml")
	content, err := configuration("", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(file, nil)
	want := config.Default()
	want.Git.URL = templateURL
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := initTemplate("CODEOWNERS"); err != nil {
		t.Error(err)
	}
}

func TestNothingIsOverwrittenByANewRepository(t *testing.T) {
	userOfGit(t)
	dir := t.TempDir()
	fleet := filepath.Join(dir, "fleet")
	mine := map[string]string{filepath.Join(fleet, "README.md"): "mine\n", filepath.Join(dir, "ingot.yaml"): "mine, too\n"}
	for path, content := range mine {
		if err := writeNewFile(path, content); err != nil {
			t.Fatal(err)
		}
	}
	_, stderr, code := command(t, "init", fleet)
	want := "ingot: nothing was written, because nothing is overwritten, and 2 files are there:\n" +
		"ingot: " + filepath.Join(fleet, "README.md") + "\ningot: " + filepath.Join(dir, "ingot.yaml") + "\n"
	if diff := cmp.Diff(want, stderr); diff != "" || code != exitFailed {
		t.Errorf("exit code %d, -want +got:\n%s", code, diff)
	}
	if diff := cmp.Diff([]string{"fleet/README.md", "ingot.yaml"}, filesBelow(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for path, content := range mine {
		if got, _ := os.ReadFile(path); string(got) != content {
			t.Errorf("%s: got %q", path, got)
		}
	}
}

// What else lies in the folder is not committed along.
func TestOnlyWhatWasWrittenIsCommitted(t *testing.T) {
	userOfGit(t)
	fleet := filepath.Join(t.TempDir(), "fleet")
	if err := writeNewFile(filepath.Join(fleet, "password.txt"), "hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := command(t, "init", fleet); code != exitFine {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	committed, _ := exec.CommandContext(t.Context(), "git", "-C", fleet, "ls-files").Output()
	if got := string(committed); strings.Contains(got, "password.txt") || !strings.Contains(got, "README.md") {
		t.Errorf("committed:\n%s", got)
	}
}

func TestARepositoryIsNotMadeWithAWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"URL":                 {args: []string{"--url", "http://ada:hunter2@x"}, want: "git.url: holds a password"},
		"owner":               {args: []string{"--owner", "infra"}, want: `"infra" is no owner: write @team`},
		"forge":               {args: []string{"--forge", "svn"}, want: `--forge must be one of "github","gitlab","forgejo","none"`},
		"place for its files": {args: []string{"--config", "fleet/ingot.yaml"}, want: "is within the repository, where it would be read as a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, stderr, code := command(t, append([]string{"init", "fleet"}, tc.args...)...)
			if code != exitFailed || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %q\n%s", code, tc.want, stderr)
			}
			if all := filesBelow(t, "."); len(all) > 0 {
				t.Errorf("written: %v", all)
			}
		})
	}
}

func TestWithoutGitFilesAreWrittenAndNothingIsApproved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	stdout, stderr, code := command(t, "init", filepath.Join(dir, "fleet"))
	if code != exitFine || !strings.Contains(stdout, "commit it ") {
		t.Errorf("init: exit code %d\n%s%s", code, stdout, stderr)
	}
	if got := filesBelow(t, filepath.Join(dir, "fleet")); !slices.Contains(got, "README.md") {
		t.Errorf("written: %v", got)
	}
	_, stderr, code = command(t, "approve", "--repository", dir)
	if want := "ingot: the program git is needed for this, and is not in PATH: install it\n"; code != exitFailed || stderr != want {
		t.Errorf("approve: exit code %d\n%s", code, stderr)
	}
}

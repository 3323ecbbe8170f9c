package main

import (
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/daemon/config"
	"ingot/model/must"
)

func userOfGit(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gitconfig")
	must.Do(t, os.WriteFile(file, []byte("[user]\n\tname = Ada\n\temail = ada@example.com\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", file)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	must.Do(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if !entry.IsDir() {
			all = append(all, path)
		}
		return err
	}))
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
				"images.yaml", "maintenances/example.yaml", "servers/example.yaml",
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
	content := must.Get(newRepository{}.configuration())(t)
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
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

func TestAConfigurationForANetworkOfServers(t *testing.T) {
	userOfGit(t)
	for at, want := range map[string]struct{ url, cidr, addresses string }{
		"rack0=10.20.0.1/24":    {"http://10.20.0.1", "10.20.0.0/24", "10.20.0.128-10.20.0.254"},
		"eth1.7=10.20.0.254/24": {"http://10.20.0.254", "10.20.0.0/24", "10.20.0.1-10.20.0.127"},
		"eth1=10.20.0.9/29":     {"http://10.20.0.9", "10.20.0.8/29", "10.20.0.12-10.20.0.14"},
		"eth1=10.0.0.1/8":       {"http://10.0.0.1", "10.0.0.0/8", "10.128.0.0-10.255.255.254"},
	} {
		dir := t.TempDir()
		fleet := filepath.Join(dir, "fleet")
		if stdout, stderr, code := command(t, "init", fleet, "--local", "--dhcp", at); code != exitFine || strings.Contains(stdout, "push") {
			t.Fatalf("%s: exit code %d\n%s%s", at, code, stdout, stderr)
		}
		got, err := config.Load(filepath.Join(dir, "ingot.yaml"), nil)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if got.Git.URL != fleet || !got.Git.AllowPlaintextSecrets {
			t.Errorf("%s: git %+v, want the folder followed, and secrets in plain text taken", at, got.Git)
		}
		network := got.DHCP[0]
		subnet := network.Subnets[0]
		name, _, _ := strings.Cut(at, "=")
		if got.Boot.URL != want.url+":8082" || got.Registry.URL != want.url+":10000" || network.Interface != name ||
			subnet.CIDR.String() != want.cidr || subnet.Ranges[0].String() != want.addresses {
			t.Errorf("%s: servers reach %s and %s, on %s, and of %s get %s", at, got.Boot.URL, got.Registry.URL, network.Interface, subnet.CIDR, subnet.Ranges)
		}
		if remotes, err := exec.CommandContext(t.Context(), "git", "-C", fleet, "remote").Output(); err != nil || len(remotes) > 0 {
			t.Errorf("%s: the folder has a remote: %s %v", at, remotes, err)
		}
	}
}

func TestTheAddressOfANetworkIsThatOfItsInterface(t *testing.T) {
	at, err := interfaceAddress{name: "lo"}.resolve()
	if err != nil || at.address.String() != "127.0.0.1/8" {
		t.Errorf("lo: %v, %v", at.address, err)
	}
	given := interfaceAddress{name: "ingot-nowhere", address: netip.MustParsePrefix("10.20.0.1/24")}
	if at, err := given.resolve(); err != nil || at != given {
		t.Errorf("an address that was given: %v, %v", at, err)
	}
}

func TestWhereGitKnowsNobodyANewRepositoryHasAnAuthor(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	t.Setenv("GIT_CONFIG_COUNT", "1") // git may know a host's full name, and take that
	t.Setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
	t.Setenv("GIT_CONFIG_VALUE_0", "true")
	fleet := filepath.Join(t.TempDir(), "fleet")
	if stdout, stderr, code := command(t, "init", fleet); code != exitFine || !strings.Contains(stderr, "git does not know who you are") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	author, err := exec.CommandContext(t.Context(), "git", "-C", fleet, "log", "--format=%an <%ae>").Output()
	if err != nil || !strings.Contains(string(author), "@") {
		t.Errorf("committed by %q: %v", author, err)
	}
}

func TestNothingIsOverwrittenByANewRepository(t *testing.T) {
	userOfGit(t)
	dir := t.TempDir()
	fleet := filepath.Join(dir, "fleet")
	mine := map[string]string{filepath.Join(fleet, "README.md"): "mine\n", filepath.Join(dir, "ingot.yaml"): "mine, too\n"}
	for path, content := range mine {
		must.Do(t, writeNewFile(path, content))
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
	must.Do(t, writeNewFile(filepath.Join(fleet, "password.txt"), "hunter2\n"))
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
		"network":             {args: []string{"--dhcp", "rack0=10.20.0.1"}, want: "write INTERFACE or INTERFACE=ADDRESS/BITS"},
		"interface":           {args: []string{"--dhcp", "ingot-nowhere"}, want: "--dhcp ingot-nowhere: this machine has no such interface; write ingot-nowhere=ADDRESS/BITS"},
		"family of addresses": {args: []string{"--dhcp", "rack0=fd00::1/64"}, want: "write an IPv4 address with at most 29 bits for the network"},
		"second place":        {args: []string{"--local", "--url", "git@h:x"}, want: "--local and --url: the repository is the folder itself, or elsewhere"},
		"nothing to follow":   {args: []string{"--local", "--no-git"}, want: "--local needs git, and no --no-git"},
		"owner":               {args: []string{"--owner", "infra"}, want: `"infra" is no owner: write @team`},
		"forge":               {args: []string{"--forge", "svn"}, want: `--forge must be one of "github","gitlab","forgejo","none"`},
		"place for its files": {args: []string{"--config", "fleet/ingot.yaml"}, want: "is within the repository, where it would be read as a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, stderr, code := command(t, append([]string{"init", "fleet"}, tc.args...)...)
			if code != exitFailed && code != exitUsage || !strings.Contains(stderr, tc.want) {
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

func TestANewRepositoryWithoutURLIsGivenARemoteBeforeItIsPushed(t *testing.T) {
	userOfGit(t)
	for _, tc := range []struct {
		args []string
		want bool
	}{{nil, true}, {[]string{"--url", "https://git.example.com/fleet.git"}, false}} {
		at := filepath.Join(t.TempDir(), "fleet")
		stdout, stderr, code := command(t, append([]string{"init", at}, tc.args...)...)
		if got := strings.Contains(stdout, "git -C "+at+" remote add origin URL\n"); code != exitFine || got != tc.want {
			t.Errorf("%v: exit code %d\n%s%s", tc.args, code, stdout, stderr)
		}
	}
}

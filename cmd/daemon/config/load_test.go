package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// load loads a configuration file that holds text. Paths in errors are shortened
// to the file's name.
func load(t *testing.T, text string, env ...string) (Options, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "ingot.yaml")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	opts, err := Load(file, env)
	if err == nil {
		return opts, ""
	}
	return opts, strings.ReplaceAll(err.Error(), dir+"/", "")
}

const repository = "git: {url: https://git.example.com/infra/metal.git}\n"

func TestOnlyTheAddressOfTheRepositoryIsRequired(t *testing.T) {
	got, problem := load(t, repository)
	if problem != "" {
		t.Fatal(problem)
	}
	want := Default()
	want.Git.URL = "https://git.example.com/infra/metal.git"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The text is the documented configuration, every key with its default.
func TestTheDocumentedDefaultsAreTheRealOnes(t *testing.T) {
	got, problem := load(t, `
git:      {url: https://git.example.com/infra/metal.git, branch: main, path: ".", interval: 60s,
           auth: {usernameFile: "", passwordFile: "", sshKeyFile: "", knownHostsFile: "", caFile: ""},
           verify: {mode: none, keys: ""}, allowPlaintextSecrets: false, ageKeyFile: ""}
status:   {branch: status, author: Ingot <ingot@localhost>, signingKeyFile: ""}
redis:    {url: "", sealKeyFile: ""}
state:    {dir: /var/lib/ingot}
bmc:      {caFile: "", requestsPerSecond: 5, powerOffGrace: 5m}
discovery: {image: "", ignitionTemplateFile: "", timeout: 30m, macPrefixesFile: ""}
cleanup:  {mode: quick}
guard:    {window: 1h, maxDisruptions: 3, maxPowerDisruptions: 10, maxConcurrentReprovisions: 1, maxConcurrentPowerOns: 10}
boot:     {listen: ":8082", url: "", architectures: [amd64, arm64], allowedRegistries: [], cacheDir: "", cacheSize: 20GiB, diskCacheDir: "", diskCacheSize: 100GiB, maxImageSize: 256GiB}
registry: {listen: ":10000", url: "", requireToken: true}
metadata: {listen: ""}
webhook:  {listen: "", secretFile: ""}
admin:    {listen: "127.0.0.1:8080"}
dhcp:     []
tftp:     {listen: ""}
`)
	if problem != "" {
		t.Fatal(problem)
	}
	want, _ := load(t, repository)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-default +documented:\n%s", diff)
	}
}

func TestAVariableWinsOverTheFile(t *testing.T) {
	key := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(key, []byte("token"), 0o600))
	got, problem := load(t, repository+"guard: {window: 7m, maxDisruptions: 9}\n",
		"HOME=/root", "INGOT_GUARD_WINDOW=9m", "INGOT_GIT_AUTH_PASSWORD_FILE="+key,
		"INGOT_BMC_REQUESTS_PER_SECOND=2.5", "INGOT_BOOT_CACHE_SIZE=3MiB", "INGOT_REGISTRY_REQUIRE_TOKEN=false",
		"INGOT_ADMIN_LISTEN=", "INGOT_GUARD_MAX_POWER_DISRUPTIONS=5")
	if problem != "" {
		t.Fatal(problem)
	}
	want := Default()
	want.Git.URL = "https://git.example.com/infra/metal.git"
	want.Git.Auth.PasswordFile = key
	want.Guard.Window = 9 * time.Minute
	want.Guard.MaxDisruptions = 9
	want.BMC.RequestsPerSecond = 2.5
	want.Boot.CacheSize = 3 << 20
	want.Registry.RequireToken = false
	want.Admin.Listen = ""
	want.Guard.MaxPowerDisruptions = 5
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEveryKeyHasAVariableOfItsOwn(t *testing.T) {
	opts := Default()
	seen := make(map[string]string)
	for _, s := range settings(&opts) {
		if other, twice := seen[s.variable]; twice {
			t.Errorf("%s is the variable of %s and of %s", s.variable, other, s.path)
		}
		seen[s.variable] = s.path
	}
	for path, variable := range map[string]string{
		"git.url": "INGOT_GIT_URL", "guard.window": "INGOT_GUARD_WINDOW", "secretFiles": "INGOT_SECRET_FILES",
		"git.auth.sshKeyFile":      "INGOT_GIT_AUTH_SSH_KEY_FILE",
		"git.auth.githubApp.appID": "INGOT_GIT_AUTH_GITHUB_APP_APP_ID", "guard.maxConcurrentPowerOns": "INGOT_GUARD_MAX_CONCURRENT_POWER_ONS",
	} {
		if seen[variable] != path {
			t.Errorf("the variable of %s is not %s", path, variable)
		}
	}
}

func TestAVariableThatMakesNoSenseIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ env, want string }{
		"a name that is nearly right": {
			env:  "INGOT_GUARD_WINDO=5s",
			want: "INGOT_GUARD_WINDO: there is no such setting, did you mean INGOT_GUARD_WINDOW?; unset it or correct its name",
		},
		"a name that is like no other": {
			env:  "INGOT_COLOUR=blue",
			want: "INGOT_COLOUR: there is no such setting; unset it or correct its name",
		},
		"a duration without a unit": {
			env:  "INGOT_GUARD_WINDOW=60",
			want: `INGOT_GUARD_WINDOW: guard.window: "60" is no duration; write a number and a unit, such as 60s, 5m or 1h`,
		},
		"a number in words": {
			env:  "INGOT_GUARD_MAX_DISRUPTIONS=three",
			want: `INGOT_GUARD_MAX_DISRUPTIONS: guard.maxDisruptions: "three" is no whole number`,
		},
		"a truth that is none": {
			env:  "INGOT_GIT_ALLOW_PLAINTEXT_SECRETS=maybe",
			want: `INGOT_GIT_ALLOW_PLAINTEXT_SECRETS: git.allowPlaintextSecrets: "maybe" is neither true nor false`,
		},
		"a size without sense": {
			env: "INGOT_BOOT_CACHE_SIZE=lots",
			want: `INGOT_BOOT_CACHE_SIZE: boot.cacheSize: "lots" is no size; write a whole number and a unit (MiB, GiB, TiB), ` +
				`such as 20GiB`,
		},
		"a list": {
			env:  "INGOT_DHCP=10.0.0.0/24",
			want: "INGOT_DHCP: dhcp: lists and mappings cannot be set in the environment; write them in the configuration file",
		},
		"a value out of bounds, with the variable that it came from": {
			env:  "INGOT_GIT_INTERVAL=-1s",
			want: "INGOT_GIT_INTERVAL: git.interval: -1s is not allowed: must be 100ms or more, such as 60s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := load(t, repository, tc.env); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestASecretInTheAddressIsNotRepeated(t *testing.T) {
	_, got := load(t, "git: {url: https://me:hunter2@git.example.com/metal.git}")
	if !strings.Contains(got, "git.auth.passwordFile") || strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
}

func TestWithoutAFileTheEnvironmentIsEnough(t *testing.T) {
	got, err := Load("", []string{"INGOT_GIT_URL=git@git.example.com:infra/metal.git"})
	if err != nil || got.Git.URL != "git@git.example.com:infra/metal.git" {
		t.Errorf("got %q, %v", got.Git.URL, err)
	}
	_, err = Load("", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "git.url: is required: ") {
		t.Errorf("got %v, want that git.url is missing", err)
	}
}

func TestAProbeImageThatIsInstalledNeedsNoSetting(t *testing.T) {
	empty, dir := t.TempDir(), t.TempDir()
	must.Do(t, errors.Join(
		os.Mkdir(filepath.Join(dir, "probe"), 0o755),
		os.WriteFile(filepath.Join(dir, "probe", "oci-layout"), []byte("{}"), 0o644),
	))
	for name, tc := range map[string]struct {
		dirs, image string
		want        string
	}{
		"none is set, and there is one":  {dirs: empty + ", " + dir, want: "oci:" + dir + "/probe"},
		"none is set, and there is none": {dirs: empty},
		"one is set":                     {dirs: dir, image: "registry.example.com/probe", want: "registry.example.com/probe"},
	} {
		t.Run(name, func(t *testing.T) {
			o, problem := load(t, repository+"boot: {imageDirs: ["+tc.dirs+"]}\n", "INGOT_DISCOVERY_IMAGE="+tc.image)
			if problem != "" || o.Discovery.Image != tc.want {
				t.Errorf("got %q, %s; want %q", o.Discovery.Image, problem, tc.want)
			}
		})
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0": 0, "17": 17, "17B": 17, "3KiB": 3 << 10, "20GiB": 20 << 30, "2 TiB": 2 << 40, "5MB": 5e6, "1kB": 1000,
	} {
		var got ByteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", text, got, err, want)
		}
		again, err := got.MarshalText()
		var twice ByteSize
		if err != nil || twice.UnmarshalText(again) != nil || twice != want {
			t.Errorf("%s is written as %s, which reads as %d", text, again, twice)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1.5GiB", "9999999999TiB", "20 gigabytes"} {
		var got ByteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %d", text, got)
		}
	}
}

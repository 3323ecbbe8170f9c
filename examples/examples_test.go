package examples

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ingot/cmd/daemon/config"
	"ingot/model"
)

func TestTheConfigurationShowsTheDefaults(t *testing.T) {
	got, err := config.Load("ingot.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Git.URL = "https://git.example.com/infra/metal.git"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ingot.yaml (-default +file):\n%s", diff)
	}
}

// keys are the settings of a struct, git.auth.passwordFile.
func keys(prefix string, of reflect.Type) []string {
	var all []string
	for field := range of.Fields() {
		name := field.Tag.Get("json")
		switch {
		case name == "-":
		case field.Type.Kind() == reflect.Struct:
			all = append(all, keys(prefix+name+".", field.Type)...)
		default:
			all = append(all, prefix+name)
		}
	}
	return all
}

// listed are the keys of a YAML file at the depth of a mapping's own lines.
var listed = regexp.MustCompile(`(?m)^( *)([a-zA-Z]+):`)

func TestTheConfigurationShowsEveryKey(t *testing.T) {
	content, err := os.ReadFile("ingot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	var above []string
	for _, line := range listed.FindAllStringSubmatch(string(content), -1) {
		above = append(above[:len(line[1])/2], line[2])
		shown[strings.Join(above, ".")] = true
	}
	for _, key := range keys("", reflect.TypeFor[config.Options]()) {
		if !shown[key] {
			t.Errorf("ingot.yaml does not show %s", key)
		}
	}
}

// shownManifest matches the beginning of a line of a manifest that is commented out; what
// begins with ## is a comment either way.
var shownManifest = regexp.MustCompile(`(?m)^# ?`)

func TestEachExampleOfTheQuickstartCountsOnceItIsNoComment(t *testing.T) {
	seen := make(map[model.Kind]bool)
	eachFile(t, Quickstart, func(name string, content []byte) {
		if path.Ext(name) != ".yaml" {
			return
		}
		if objects, problems := model.Decode(name, content, model.DecodeOptions{}); len(objects)+len(problems) > 0 {
			t.Errorf("%s asks for something, and says %v", name, problems)
		}
		objects, problems := model.Decode(name, shownManifest.ReplaceAll(content, nil), model.DecodeOptions{})
		for _, p := range problems {
			t.Error(p.String())
		}
		for _, o := range objects {
			seen[o.Identity().Kind] = true
		}
	})
	for _, kind := range []model.Kind{model.KindBMC, model.KindServer, model.KindServerClaim, model.KindServerMaintenance} {
		if !seen[kind] {
			t.Errorf("no example of a %s was found", kind)
		}
	}
}

// A check that cannot be read checks nothing, and nobody notices.
func TestTheChecksOfPullRequestsValidateAndPlan(t *testing.T) {
	seen := 0
	eachFile(t, CI, func(name string, content []byte) {
		var check map[string]any
		if err := yaml.Unmarshal(content, &check); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{"ingot validate ", "ingot plan --base "} {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s does not run %q", name, want)
			}
		}
		seen++
	})
	if seen != 3 {
		t.Errorf("%d checks were found, want those of 3 forges", seen)
	}
}

func eachFile(t *testing.T, files fs.FS, do func(name string, content []byte)) {
	t.Helper()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		do(name, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheNetworksCanBeServed(t *testing.T) {
	o, err := config.Load("networks/ingot.yaml", []string{"INGOT_DISCOVERY_MAC_PREFIXES_FILE=mac-prefixes.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range o.DHCP {
		names = append(names, n.Name)
	}
	if diff := cmp.Diff([]string{"oob", "rack1", "rack2", "office"}, names); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
}

func TestTheMACPrefixDatabaseKnowsTheLargeMakers(t *testing.T) {
	content, err := os.ReadFile("mac-prefixes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db, problems := model.DecodeMACPrefixes("mac-prefixes.yaml", content, model.TokenKey{})
	for _, p := range problems {
		t.Error(p)
	}
	for mac, want := range map[string]struct{ maker, user string }{
		"d0:94:66:00:00:01": {"Dell", "root"},
		"94:40:c9:00:00:01": {"HPE", ""},
		"7c:c2:55:00:00:01": {"Supermicro", "ADMIN"},
		"08:94:ef:00:00:01": {"Lenovo", "USERID"},
		"b4:2e:99:00:00:01": {"GIGABYTE", "admin"},
		"d0:50:99:00:00:01": {"ASRockRack", "admin"},
		"a8:1e:84:00:00:01": {"Quanta", "admin"},
		"6c:92:bf:00:00:01": {"Inspur", "admin"},
		"90:1b:0e:00:00:01": {"Fujitsu", "admin"},
	} {
		e, ok := db.Lookup(mac)
		if !ok {
			t.Errorf("%s is not known", mac)
			continue
		}
		user := ""
		if len(e.Credentials) > 0 {
			user = e.Credentials[0].Username
		}
		redfish := model.Protocol{Name: "Redfish", Port: 443, Scheme: "https"}
		if e.Manufacturer != want.maker || user != want.user || e.Type != model.TypeBMC || e.Protocol != redfish {
			t.Errorf("%s: got %+v", mac, e)
		}
	}
	if e, ok := db.Lookup("02:00:00:00:00:01"); ok {
		t.Errorf("a MAC address of nobody's is known as %+v", e)
	}
}

// TestWorkflowsAreYAMLAndShell parses the workflows of CI systems, and has bash parse their
// scripts. Features run them.
func TestWorkflowsAreYAMLAndShell(t *testing.T) {
	for _, file := range []string{"ci/github.yaml", "ci/gitlab.yaml", "ci/forgejo.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Steps []struct{ Run string }
			}
			Ingot struct {
				BeforeScript []string `json:"before_script"`
				Script       []string
			}
		}
		if err := yaml.Unmarshal(data, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		scripts := slices.Concat(workflow.Ingot.BeforeScript, workflow.Ingot.Script)
		for _, step := range workflow.Jobs["plan"].Steps {
			scripts = append(scripts, step.Run)
		}
		if len(scripts) < 5 {
			t.Errorf("%s has %d scripts: is it read as it should be?", file, len(scripts))
		}
		for _, script := range scripts {
			cmd := exec.Command("bash", "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", file, err, out, script)
			}
			// What a pull request says must not become a part of a script.
			if strings.Contains(script, "${{") {
				t.Errorf("%s: a script has an expression in it: hand it over in env\n%s", file, script)
			}
		}
		if workflow.Permissions["contents"] == "write" || strings.Contains(strings.ReplaceAll(string(data), `"pull_request_target"`, ""), "pull_request_target") {
			t.Errorf("%s may do more than it needs to: %v", file, workflow.Permissions)
		}
	}
}

// The release is a tar archive with a script as its program.
func TestWorkflowInstallsVerifiedRelease(t *testing.T) {
	release := t.TempDir()
	pack := exec.Command("sh", "-ec", `mkdir -p "$0/usr/bin" v1
		printf '#!/bin/sh\necho installed\n' >"$0/usr/bin/ingot"; chmod +x "$0/usr/bin/ingot"
		tar -czf "v1/$0.tar.gz" "$0"; cd v1; echo other >other; sha256sum * >SHA256SUMS`, "ingot-v1-linux-amd64")
	pack.Dir = release
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("make the release: %v: %s", err, out)
	}
	altered := t.TempDir()
	if err := os.CopyFS(altered, os.DirFS(release)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path.Join(altered, "v1", "ingot-v1-linux-amd64.tar.gz"), []byte("altered"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"ci/github.yaml", "ci/gitlab.yaml", "ci/forgejo.yaml"} {
		for name, tc := range map[string]struct{ folder, version, want string }{
			"the release is installed":    {release, "v1", "installed"},
			"an altered archive fails":    {altered, "v1", "FAILED"},
			"an unknown version fails":    {release, "v2", "404"},
			"an unset variable is named":  {release, "", "INGOT_VERSION: set this"},
			"a version not in sums fails": {altered, "v1/../v1", ""},
		} {
			t.Run(file+": "+name, func(t *testing.T) {
				server := httptest.NewServer(http.FileServer(http.Dir(tc.folder)))
				defer server.Close()
				temp := t.TempDir()
				install := exec.Command("bash", "-ec", installScript(t, file)+`
					[ ! -e "$GITHUB_PATH" ] || PATH="$(cat "$GITHUB_PATH"):$PATH"
					ingot`)
				install.Dir = temp
				install.Env = append(os.Environ(), "RUNNER_TEMP="+temp, "TMPDIR="+temp, "GITHUB_PATH="+path.Join(temp, "path"),
					"INGOT_RELEASES="+server.URL, "INGOT_VERSION="+tc.version)
				out, err := install.CombinedOutput()
				if (err == nil) != (tc.want == "installed") || !strings.Contains(string(out), tc.want) {
					t.Errorf("%v, %s", err, out)
				}
			})
		}
	}
}

// installScript returns the part of a workflow that installs Ingot.
func installScript(t *testing.T, file string) string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
		Ingot struct {
			BeforeScript []string `json:"before_script"`
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	for _, step := range workflow.Jobs["plan"].Steps {
		if step.Name == "Install" {
			return step.Run
		}
	}
	return workflow.Ingot.BeforeScript[len(workflow.Ingot.BeforeScript)-1]
}

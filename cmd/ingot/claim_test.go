package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func newFleet(t *testing.T) string {
	t.Helper()
	userOfGit(t)
	fleet := filepath.Join(t.TempDir(), "fleet")
	if _, stderr, code := command(t, "init", fleet); code != exitFine {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	return fleet
}

func TestAClaimIsWrittenAsTheDaemonReadsIt(t *testing.T) {
	const head = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n"
	fleet := newFleet(t)
	for name, tc := range map[string]struct{ args, file, want string }{
		"any server": {
			args: "web-1 --image oci:probe", file: "claims/default/web-1.yaml",
			want: head + "  name: web-1\n  namespace: default\nspec:\n  image: oci:/usr/share/ingot/images/probe\n  power: \"On\"\n",
		},
		"a server by name, in a namespace": {
			args: "prod/db-1 --image registry.example.com/debian:12 --server rack7-1 --ignition db", file: "claims/prod/db-1.yaml",
			want: head + "  name: db-1\n  namespace: prod\nspec:\n  ignitionSecretRef:\n    name: db\n  image: registry.example.com/debian:12\n" +
				"  power: \"On\"\n  serverRef:\n    name: rack7-1\n",
		},
		"a disk image": {
			args: "disk-1 --image https://images.example.com/a.raw#sha256:" + strings.Repeat("ab", 32), file: "claims/default/disk-1.yaml",
			want: head + "  name: disk-1\n  namespace: default\nspec:\n  image: https://images.example.com/a.raw#sha256:" +
				strings.Repeat("ab", 32) + "\n  power: \"On\"\n",
		},
		"a server by labels": {
			args: "web-2 --image oci:/srv/images/flatcar:1 -l rack=7,gpu", file: "claims/default/web-2.yaml",
			want: head + "  name: web-2\n  namespace: default\nspec:\n  image: oci:/srv/images/flatcar:1\n  power: \"On\"\n  serverSelector:\n" +
				"    matchExpressions:\n    - key: gpu\n      operator: Exists\n    matchLabels:\n      rack: \"7\"\n",
		},
		"a server without a label": {
			args: "web-3 --image oci:/srv/images/flatcar:1 -l rack!=8", file: "claims/default/web-3.yaml",
			want: head + "  name: web-3\n  namespace: default\nspec:\n  image: oci:/srv/images/flatcar:1\n  power: \"On\"\n  serverSelector:\n" +
				"    matchExpressions:\n    - key: rack\n      operator: NotIn\n      values:\n      - \"8\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append([]string{"claim", "-C", fleet}, strings.Fields(tc.args)...)...)
			if code != exitFine || !strings.Contains(stdout, "git -C "+fleet+" add "+tc.file) {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
			got, _ := os.ReadFile(filepath.Join(fleet, filepath.FromSlash(tc.file)))
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	// "db" is a Secret that is not there yet: a warning of the claim, which is written.
	if stdout, stderr, code := command(t, "validate", fleet); code != exitFine {
		t.Errorf("validate: exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestAClaimNamesTheSchemaIfThereIsOne(t *testing.T) {
	fleet := newFleet(t)
	must.Do(t, writeNewFile(filepath.Join(fleet, schemaFile), "{}\n"))
	t.Chdir(fleet)
	stdout, stderr, code := command(t, "claim", "web-1", "--image", "oci:probe")
	if code != exitFine || !strings.Contains(stdout, "  git add claims/default/web-1.yaml\n") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	got, _ := os.ReadFile("claims/default/web-1.yaml")
	if first, _, _ := strings.Cut(string(got), "\n"); first != "# yaml-language-server: $schema=../../.manifests.schema.json" {
		t.Errorf("the first line is %q", first)
	}
}

func TestAClaimThatCannotBeIsNotWritten(t *testing.T) {
	fleet := newFleet(t)
	for path, content := range map[string]string{
		"claims/default/there.yaml": "kind: mine\n",
		"more/elsewhere.yaml": "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\n" +
			"metadata: {name: elsewhere, namespace: default}\nspec: {power: \"On\", image: \"a.example/b:1\"}\n",
	} {
		must.Do(t, writeNewFile(filepath.Join(fleet, path), content))
	}
	before := filesBelow(t, fleet)
	for name, tc := range map[string]struct{ args, want string }{
		"no image":                             {args: "web-1", want: "missing flags: --os=NAME or --image=IMAGE"},
		"an image that is none":                {args: "web-1 --image registry.example.com/", want: "--image"},
		"a disk image that nobody could check": {args: "web-1 --image https://x/y", want: "#sha256:"},
		"a path in its name":                   {args: "../../x --image oci:probe", want: "is not a name of a claim"},
		"a name the daemon refuses": {
			args: "web-.-1 --image oci:probe", want: "nothing was written: " + filepath.ToSlash(fleet) + "/claims/default/web-.-1.yaml:4:",
		},
		"labels that are none":   {args: "web-1 --image oci:probe -l rack@7", want: `--selector: "rack@7" selects by no labels`},
		"two values of a label":  {args: "web-1 --image oci:probe -l rack=7,rack=8", want: "label rack cannot be both 7 and 8; write rack in (7,8)"},
		"a server without name":  {args: "web-1 --image oci:probe --server A_b", want: "serverRef"},
		"a file that is there":   {args: "there --image oci:probe", want: "nothing is overwritten"},
		"a claim in another":     {args: "elsewhere --image oci:probe", want: "is also defined in"},
		"no clone":               {args: "web-1 --image oci:probe -C /", want: "is no clone of a repository"},
		"a folder in the clone":  {args: "web-1 --image oci:probe -C " + fleet + "/bmcs", want: "has no folder claims and is not the root of the repository"},
		"a folder that is none":  {args: "web-1 --image oci:probe -C " + fleet + "/none", want: "is no clone of a repository"},
		"two names":              {args: "web-1 web-2 --image oci:probe", want: "unexpected argument web-2"},
		"a namespace too many":   {args: "a/b/c --image oci:probe", want: "is not a name of a claim"},
		"a layout without name":  {args: "web-1 --image oci:", want: "--image"},
		"a layout beside others": {args: "web-1 --image oci:../x", want: "--image"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"claim"}, strings.Fields(tc.args)...)
			if !strings.Contains(tc.args, "-C") {
				args = append(args, "-C", fleet)
			}
			stdout, stderr, code := command(t, args...)
			if code != exitFailed && code != exitUsage || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %q\n%s%s", code, tc.want, stdout, stderr)
			}
			if diff := cmp.Diff(before, filesBelow(t, fleet)); diff != "" {
				t.Errorf("files: -want +got:\n%s", diff)
			}
		})
	}
}

func TestClaimWithSSHKeys(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF1juKY626E4fQzuHKLR/K2kbdeSBuEmw9YynTh72RL8 "
	fleet := newFleet(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a, b := file("a.pub", key+"alice\n"), file("b.pub", "# two\n"+key+"bob\n"+key+"eve\n")
	_, stderr, code := command(t, "claim", "-C", fleet, "web-1", "--image", "oci:probe", "--ssh-key", a, "--ssh-key", b)
	got, _ := os.ReadFile(filepath.Join(fleet, "claims/default/web-1.yaml"))
	want := "metadata:\n  annotations:\n    ingot/ssh-authorized-keys: |\n      " + key + "alice\n      " + key + "bob\n      " + key + "eve\n  name: web-1\n"
	if code != exitFine || !strings.Contains(string(got), want) {
		t.Errorf("exit code %d\n%s\n%s\nwant\n%s", code, stderr, got, want)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"private key": {"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n", ":1: found a private key"},
		"options":     {"\nno-pty " + key, ":2: options such as"},
		"empty file":  {"\n", "has no public key"},
	} {
		_, stderr, code := command(t, "claim", "-C", fleet, "web-2", "--image", "oci:probe", "--ssh-key", file("k", tc.text))
		if code == exitFine || !strings.Contains(stderr, tc.want) || strings.Contains(stderr, "c2VjcmV0") {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(fleet, "claims/default/web-2.yaml")); err == nil {
		t.Error("a claim with a wrong key was written")
	}
}

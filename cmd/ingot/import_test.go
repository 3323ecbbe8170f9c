package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/cmd/daemon/config"
	"ingot/cmd/ingot/cluster"
	"ingot/model/must"
)

const clusterFile = "cluster/testdata/cluster.yaml"

func TestAClusterIsImportedIntoARepository(t *testing.T) {
	userOfGit(t)
	dir := filepath.Join(t.TempDir(), "fleet")
	data := must.Get(os.ReadFile(clusterFile))(t)
	var out, errs bytes.Buffer
	args := []string{"import", dir, "--url", "https://git.example.com/infra/fleet.git"}
	code := execute(t.Context(), args, &console{in: bytes.NewReader(data), out: &out, err: &errs})
	if code != exitFine {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{
		"Carried over: 1 Endpoint, 1 BMC, 6 Servers, 4 ServerClaims, 1 ServerMaintenance, 1 ServerReadinessRule. " +
			"Ingot adopts the servers of 3 claims as they run.\n",
		"\n  Secret shop/web-ignition, for ServerClaim shop/db\n",
		"\n  kubectl get secrets -n shop web-ignition -o json | " +
			"jq '{apiVersion, kind, metadata: {name: .metadata.name, namespace: .metadata.namespace}, data}' | sops ",
		"\n  BIOSSettings virtualization: Ingot does not read the kind BIOSSettings",
		"\n  Server bmc-1-system-1 is Off, and ServerClaim shop/db wants it On",
		"Stop metal-operator before Ingot starts",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "aHVudGVyMg") || strings.Contains(out.String(), "e30=") {
		t.Errorf("a secret is printed:\n%s", out.String())
	}
	if stdout, stderr, code := command(t, "validate", "--strict-secrets", dir); code != exitFine {
		t.Errorf("validate: exit code %d\n%s%s", code, stdout, stderr)
	}
	if opts, err := config.Load(filepath.Join(filepath.Dir(dir), "ingot.yaml"), nil); err != nil || opts.Git.AllowPlaintextSecrets {
		t.Errorf("configuration: %v, plaintext %v", err, opts.Git.AllowPlaintextSecrets)
	}
}

func TestAnImportForProgramsAndInPlainText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	stdout, stderr, code := command(t, "-o", "json", "import", dir, clusterFile, "--plaintext-secrets", "--no-git")
	var got struct {
		Bound   int
		Secrets []cluster.Secret
		LeftOut []cluster.LeftOut
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFine {
		t.Fatalf("%v, exit code %d\n%s%s", err, code, stdout, stderr)
	}
	if got.Bound != 3 || len(got.Secrets) != 0 || len(got.LeftOut) == 0 {
		t.Errorf("got %+v", got)
	}
	if opts, err := config.Load(filepath.Join(filepath.Dir(dir), "ingot.yaml"), nil); err != nil || !opts.Git.AllowPlaintextSecrets {
		t.Errorf("configuration: %v, plaintext %v", err, opts.Git.AllowPlaintextSecrets)
	}
	stdout, _, code = command(t, "validate", "--strict-secrets", dir)
	if code != exitFailed || !strings.Contains(stdout, "web-ignition.secret.yaml") {
		t.Errorf("validate: exit code %d\n%s", code, stdout)
	}
}

func TestNothingIsWrittenOfWhatIsNoCluster(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"nothing":   {content: "---\n", want: "there is no object in it"},
		"no object": {content: "a: b\n", want: "a document has no kind"},
		"objects of somebody else": {
			content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", want: "there is no object in it that Ingot has a use for",
		},
		"objects without a name": {content: "kind: Server\napiVersion: metal.ironcore.dev/v1alpha1\n", want: "a Server has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			must.Do(t, writeNewFile("dump.yaml", tc.content))
			_, stderr, code := command(t, "import", "fleet", "dump.yaml")
			if code != exitFailed || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %q\n%s", code, tc.want, stderr)
			}
			if got := filesBelow(t, "."); len(got) != 1 {
				t.Errorf("written: %v", got)
			}
		})
	}
}

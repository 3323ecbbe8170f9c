package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// wrongInput is a mistake as a person makes it, with the exact output and the exit code.
type wrongInput struct {
	name    string
	args    string // of the command line; FILE is a file with text
	text    string // of the file web.yaml
	catalog bool   // in images.yaml
	code    int
	out     string // standard output without the line with counts, or standard error if that is empty
}

const claimHead = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web}\n"

// imaged is a claim with an image.
func imaged(image string) string {
	return claimHead + "spec:\n  power: \"On\"\n  image: " + image + "\n"
}

// annotated is a claim with an annotation.
func annotated(key, value string) string {
	return "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n  name: web\n  annotations:\n    " + key + ": " + value +
		"\nspec: {power: \"On\", image: registry.example.com/os:1}\n"
}

// secret is a claim with its Secret, of which one key is a block of text.
func secret(key, text string) string {
	return claimHead + "spec: {power: \"On\", image: registry.example.com/os:1, ignitionSecretRef: {name: web}}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: default}\nstringData:\n  " + key + ": |\n    " +
		strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}

// noRegistry is the message about an image without its registry.
const noRegistry = `web.yaml:6:10: ServerClaim default/web: spec.image: %[1]q has no registry; write it in full, such as registry.example.com/%[1]s, ` +
	`oci:/PATH of a layout, or the URL of a disk image with its digest (https://…#sha256:…)`

// noCatalog is the message about a name for images.yaml that has no images.yaml.
const noCatalog = `web.yaml:6:10: ServerClaim default/web: spec.image: %q is a name for images.yaml, which names no image; ` +
	`name it there, at the root of git.path, or write the whole reference: registry.example.com/os/image:tag`

// Mistakes of people who begin with Ingot: each has one line with its place and what to do.
func TestWrongInputs(t *testing.T) {
	rows := wrongInputs()
	if len(rows) < 60 {
		t.Errorf("%d rows, want 60 at least", len(rows))
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(row.text), 0o600))
			if row.catalog {
				must.Do(t, os.WriteFile(filepath.Join(dir, "images.yaml"), []byte(catalog), 0o600))
			}
			must.Do(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
			t.Chdir(dir)
			var out, errs bytes.Buffer
			code := execute(t.Context(), strings.Fields(row.args), &console{in: strings.NewReader(""), out: &out, err: &errs, daemon: "127.0.0.1:1"})
			got := out.String()
			if strings.HasPrefix(row.args, "validate web.yaml") {
				got = problemsAlone(got)
			}
			if got == "" {
				got = errs.String()
			}
			if got = strings.TrimSuffix(got, "\n"); got != row.out || code != row.code {
				t.Errorf("exit code %d, want %d (-want +got):\n%s", code, row.code, cmp.Diff(row.out, got))
			}
		})
	}
}

// problemsAlone are the errors of a validation.
func problemsAlone(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "web.yaml") && !strings.Contains(line, "warning: Secret default/web: holds a secret in plain text") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func wrongInputs() []wrongInput {
	var rows []wrongInput
	add := func(image, out string) {
		rows = append(rows, wrongInput{name: "image " + image, args: "validate web.yaml", text: imaged(image), code: 1, out: fmt.Sprintf(out, image)})
	}
	for _, image := range []string{"nginx", "debian"} {
		add(image, noCatalog)
	}
	for _, image := range []string{"debian:13", "library/debian:13"} {
		add(image, noRegistry)
	}
	return append(rows, wrongInputTable...)
}

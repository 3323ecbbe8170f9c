package ignition

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

// Servers that are claimed boot without the probe's template, so it may come later.
func TestTheProbeTemplateIsReadWhenItCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "probe.bu")
	g := must.Get(New(Options{ProbeTemplateFile: file}))(t)
	boot := ProbeBoot{
		UUID: "4c4c4544-0042-3510-8052-b4c04f564433", RegistryURL: "http://192.0.2.1:10000", Token: model.NewSensitive(testToken), Purpose: model.PurposeDiscovery,
	}
	if _, err := g.ForProbe(boot); !errors.Is(err, errTemplateMissing) || !strings.Contains(err.Error(), file) {
		t.Errorf("without the file: %v", err)
	}
	const template = "variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: /a, contents: {inline: \"{{.Flags}}\"}}]}\n"
	must.Do(t, os.WriteFile(file, []byte(template), 0o600))
	if document, err := g.ForProbe(boot); err != nil || document.IsZero() {
		t.Errorf("once it is there: %v", err)
	}
	must.Do(t, os.WriteFile(file, []byte("{{"), 0o600))
	if _, err := New(Options{ProbeTemplateFile: file}); err == nil || !strings.Contains(err.Error(), "probe template") {
		t.Errorf("one that is wrong: %v", err)
	}
}

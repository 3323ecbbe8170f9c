package report

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// testdata/branch has the files that are read of a status branch, as the version of
// 2026-11-24 wrote them, with something in each field.
func TestABranchOfAFormerVersionIsReadWhole(t *testing.T) {
	root := filepath.Join("testdata", "branch")
	files := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		document, err := ReadDocument(filepath.ToSlash(name), raw)
		if err != nil || document == nil {
			t.Errorf("%s: %v, %v", name, document, err)
			return nil
		}
		now, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		renamed := bytes.ReplaceAll(raw, []byte("  bootRung: "), []byte("  bootOverrideVariant: "))
		var before, after map[string]any
		if err := yaml.Unmarshal(renamed, &before); err != nil {
			return err
		}
		if err := yaml.Unmarshal(now, &after); err != nil {
			return err
		}
		compareKeys(t, strings.TrimSuffix(name, ".yaml"), before, after)
		return nil
	})
	if err != nil || files != 6 {
		t.Fatalf("%d files: %v", files, err)
	}
}

// compareKeys names what was read otherwise than it was written, but for the version of
// the schema, which nobody asks for.
func compareKeys(t *testing.T, at string, before, after map[string]any) {
	t.Helper()
	for key, value := range before {
		inner, isMap := value.(map[string]any)
		innerAfter, wasMap := after[key].(map[string]any)
		switch {
		case key == "apiVersion":
		case isMap && wasMap:
			compareKeys(t, at+"."+key, inner, innerAfter)
		case !reflect.DeepEqual(after[key], value):
			t.Errorf("%s.%s: %v was read as %v", at, key, value, after[key])
		}
	}
}

package reconcile

import (
	"testing"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// rendered writes a report out as the status branch holds it.
func rendered(t *testing.T, r *model.Report) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for path, d := range r.Documents {
		files[path] = []byte(d.Text)
		if d.Object == nil {
			continue
		}
		data, err := yaml.Marshal(d.Object)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = data
	}
	return files
}

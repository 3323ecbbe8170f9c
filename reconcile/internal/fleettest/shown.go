package fleettest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Rendered writes a report out as the status branch holds it.
func Rendered(t *testing.T, r *model.Report) map[string][]byte {
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

// ConditionOf is a condition in a line, "" when it is not there.
func ConditionOf(conds []metav1.Condition, kind string) string {
	for _, c := range conds {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

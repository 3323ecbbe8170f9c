package daemon

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

// documents are what the status branch holds, or is about to.
type documents struct {
	paths  []string // sorted
	decode func(path string, into any) error
}

// documentsOf are the files of the status branch.
func documentsOf(files map[string][]byte) documents {
	return documents{slices.Sorted(maps.Keys(files)), func(path string, into any) error {
		return yaml.Unmarshal(files[path], into)
	}}
}

// reportedDocuments are those of a report.
func reportedDocuments(r *model.Report) documents {
	return documents{slices.Sorted(maps.Keys(r.Documents)), func(path string, into any) error {
		data, err := json.Marshal(r.Documents[path].Object)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, into)
	}}
}

// conditions are those of an object's status.
type conditions []metav1.Condition

// of returns the condition of a type, or the zero one.
func (c conditions) of(kind string) metav1.Condition {
	at := slices.IndexFunc(c, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 {
		return metav1.Condition{}
	}
	return c[at]
}

// why says why the condition of a type does not hold, "" if it does or is not there.
func (c conditions) why(kind string) string {
	of := c.of(kind)
	if of.Status != metav1.ConditionFalse {
		return ""
	}
	return saying(of)
}

// saying is what a condition says to people.
func saying(c metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Message
}

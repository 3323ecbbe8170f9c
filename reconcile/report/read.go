package report

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// documents are those of a report, or of the status branch.
type documents struct {
	paths []string // sorted
	at    func(path string) (any, error)
}

// filesOf are the files of the status branch.
func filesOf(files map[string][]byte) documents {
	return documents{slices.Sorted(maps.Keys(files)), func(path string) (any, error) { return ReadDocument(path, files[path]) }}
}

// reportedBy are the documents of a report.
func reportedBy(r *model.Report) documents {
	return documents{slices.Sorted(maps.Keys(r.Documents)), func(path string) (any, error) { return r.Documents[path].Object, nil }}
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

// besides is what there is to do about a claim whose server is where it should be: the zero
// value where there is nothing.
func (c conditions) besides() metav1.Condition {
	for _, kind := range []string{model.ReasonPendingReprovision, model.ReasonCloudInitFailed} {
		if beside := c.of(kind); beside.Status == metav1.ConditionTrue {
			return beside
		}
	}
	return metav1.Condition{}
}

// saying is what a condition says to people.
func saying(c metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Message
}

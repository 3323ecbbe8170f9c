package report

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

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

// ReadDocument returns the document that a file of the status branch holds, as it was
// written; nil for one of which nobody asks anything.
func ReadDocument(path string, data []byte) (any, error) {
	switch folder, _, _ := strings.Cut(path, "/"); folder {
	case model.ReportRevision:
		return readWhole(data, new(Revision))
	case model.ReportProblems:
		return readWhole(data, new(Problems))
	case "servers":
		return readObject[ServerSpec, ServerStatus, model.ServerRecord](data)
	case "serverclaims":
		return readObject[model.ServerClaimSpec, ClaimStatus, model.ClaimRecord](data)
	case "serverbootconfigurations":
		return readObject[BootConfigurationSpec, BootConfigurationStatus, model.ClaimRecord](data)
	case "bmcs":
		return readObject[BMCSpec, BMCStatus, model.BMCRecord](data)
	case "endpoints":
		return readObject[EndpointSpec, EndpointStatus, model.EndpointRecord](data)
	}
	return nil, nil
}

func readWhole[D any](data []byte, d *D) (*D, error) { return d, yaml.Unmarshal(data, d) }

// readObject reads the document of one object.
func readObject[Spec, Status, Record any](data []byte) (*Document, error) {
	var d struct {
		Kind     string   `json:"kind"`
		Metadata Metadata `json:"metadata"`
		Spec     Spec     `json:"spec"`
		Status   Status   `json:"status"`
		Record   *Record  `json:"record"`
	}
	if err := yaml.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	return &Document{Kind: d.Kind, Metadata: d.Metadata, Spec: d.Spec, Status: d.Status, Record: d.Record}, nil
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

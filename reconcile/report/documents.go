package report

import "ingot/model"

// Document is one object as the status branch shows it: upstream's schema, and
// beside it the record that only Ingot knows (law 3 reads it back).
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`
	Status     any      `json:"status,omitempty"`
	Record     any      `json:"record,omitempty"`

	at place // of a server; not written out, for it is read from what is
}

// Metadata names an object.
type Metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Annotations of a server are the ServerReadinessRules that it need be ready for no more.
	Annotations map[string]string `json:"annotations,omitempty"`
}

func newDocument(kind model.Kind, name string) *Document {
	return &Document{APIVersion: model.APIVersion, Kind: string(kind), Metadata: Metadata{Name: name}}
}

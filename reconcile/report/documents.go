package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"ingot/model"
)

// Document is one object: a file of the status branch in upstream's schema, and the only source of
// the API, the page and the commands. Of its sections only the last is read back (law 3).
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`    // what Git says
	Status     any      `json:"status,omitempty"`  // what was observed
	Decided    any      `json:"decided,omitempty"` // a record

	at place // of a server; not written out, for it is read from what is
}

var sections = map[Folder]Document{
	Servers:            {Spec: ServerSpec{}, Status: ServerStatus{}, Decided: (*model.ServerRecord)(nil)},
	Claims:             {Spec: model.ServerClaimSpec{}, Status: ClaimStatus{}, Decided: (*model.ClaimRecord)(nil)},
	BootConfigurations: {Spec: BootConfigurationSpec{}, Status: BootConfigurationStatus{}, Decided: (*model.ClaimRecord)(nil)},
	BMCs:               {Spec: BMCSpec{}, Status: BMCStatus{}, Decided: (*model.BMCRecord)(nil)},
	Endpoints:          {Spec: EndpointSpec{}, Status: EndpointStatus{}, Decided: (*model.EndpointRecord)(nil)},
	Maintenances:       {Spec: model.ServerMaintenanceSpec{}, Status: MaintenanceStatus{}},
	ReadinessRules:     {Spec: model.ServerReadinessRuleSpec{}, Status: ReadinessRuleStatus{}},
}

// SectionsOf returns the types of the sections of a folder's documents; decided is nil if they have none.
func SectionsOf(f Folder) (spec, status, decided reflect.Type) {
	of := sections[f]
	return reflect.TypeOf(of.Spec), reflect.TypeOf(of.Status), reflect.TypeOf(of.Decided)
}

// ParseDocument reads a document as the API returns it.
func ParseDocument(data []byte) (*Document, error) {
	var raw struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   Metadata        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
		Status     json.RawMessage `json:"status"`
		Decided    json.RawMessage `json:"decided"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	d := &Document{APIVersion: raw.APIVersion, Kind: raw.Kind, Metadata: raw.Metadata}
	spec, status, decided := SectionsOf(d.Folder())
	for _, section := range []struct {
		into *any
		as   reflect.Type
		data json.RawMessage
	}{{&d.Spec, spec, raw.Spec}, {&d.Status, status, raw.Status}, {&d.Decided, decided, raw.Decided}} {
		if section.as == nil || len(section.data) == 0 {
			continue
		}
		v := reflect.New(section.as)
		if err := json.Unmarshal(section.data, v.Interface()); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", d.Kind, d.Name(), err)
		}
		*section.into = v.Elem().Interface()
	}
	return d, nil
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

// ReadDocument returns the document that a file of the status branch holds, as it was
// written; nil for files of other kinds. With an error it has all that could be read.
func ReadDocument(path string, data []byte) (any, error) {
	folder, _ := splitPath(path)
	doc, ok := sections[folder]
	switch {
	case path == model.ReportFleet:
		doc := new(Fleet)
		return doc, model.DecodeDocument(path, data, doc)
	case !ok:
		return nil, nil
	}
	undecided := doc.Decided
	err := model.DecodeDocument(path, data, &doc)
	if doc.Decided == undecided {
		doc.Decided = nil
	}
	return &doc, err
}

// splitPath splits the path of an object's file, "" for one of no object.
func splitPath(path string) (folder Folder, name string) {
	parent, file, _ := strings.Cut(path, "/")
	name, object := strings.CutSuffix(file, ".yaml")
	if !object || name == "" {
		return "", ""
	}
	return Folder(parent), name
}

// ServerAt returns the server of a path of the status branch.
func ServerAt(path string) (model.ServerName, bool) {
	folder, name := splitPath(path)
	return model.ServerName(name), folder == Servers
}

// ClaimAt returns the claim, or the ServerBootConfiguration, of a path of the status branch.
func ClaimAt(path string) (model.ClaimName, bool) {
	folder, name := splitPath(path)
	if folder == BootConfigurations {
		return model.BootConfigurationName(model.SplitName(model.ClaimName(name))), true
	}
	return model.ClaimName(name), folder == Claims
}

// ClaimPath is where a claim, or a ServerBootConfiguration, is on the status branch.
func ClaimPath(name model.ClaimName) string {
	ns, n := model.SplitName(name)
	if name.IsBootConfiguration() {
		return BootConfigurations.Path(ns + "/" + n)
	}
	return Claims.Path(ns + "/" + n)
}

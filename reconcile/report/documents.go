package report

import (
	"strings"

	"ingot/model"
)

// Document is one object as the status branch shows it, in upstream's schema. Of its sections only the
// last is read back (law 3).
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       any      `json:"spec,omitempty"`    // what Git says
	Status     any      `json:"status,omitempty"`  // what was observed
	Decided    any      `json:"decided,omitempty"` // a record

	at place // of a server; not written out, for it is read from what is
}

// sections have the types of a document's sections, by folder.
var sections = map[string]Document{
	serverFolder:            {Spec: ServerSpec{}, Status: ServerStatus{}, Decided: (*model.ServerRecord)(nil)},
	claimFolder:             {Spec: model.ServerClaimSpec{}, Status: ClaimStatus{}, Decided: (*model.ClaimRecord)(nil)},
	bootConfigurationFolder: {Spec: BootConfigurationSpec{}, Status: BootConfigurationStatus{}, Decided: (*model.ClaimRecord)(nil)},
	bmcFolder:               {Spec: BMCSpec{}, Status: BMCStatus{}, Decided: (*model.BMCRecord)(nil)},
	endpointFolder:          {Spec: EndpointSpec{}, Status: EndpointStatus{}, Decided: (*model.EndpointRecord)(nil)},
}

// The folders of objects with a section decided.
const (
	serverFolder            = "servers/"
	claimFolder             = "serverclaims/"
	bootConfigurationFolder = "serverbootconfigurations/"
	bmcFolder               = "bmcs/"
	endpointFolder          = "endpoints/"
)

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
	case path == model.ReportRevision:
		doc := new(Revision)
		return doc, model.DecodeDocument(path, data, doc)
	case path == model.ReportProblems:
		doc := new(Problems)
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
func splitPath(path string) (folder, name string) {
	folder, file, _ := strings.Cut(path, "/")
	name, object := strings.CutSuffix(file, ".yaml")
	if !object || name == "" {
		return "", ""
	}
	return folder + "/", name
}

// ServerAt returns the server of a path of the status branch.
func ServerAt(path string) (model.ServerName, bool) {
	folder, name := splitPath(path)
	return model.ServerName(name), folder == serverFolder
}

// ClaimAt returns the claim, or the ServerBootConfiguration, of a path of the status branch.
func ClaimAt(path string) (model.ClaimName, bool) {
	folder, name := splitPath(path)
	if folder == bootConfigurationFolder {
		return model.BootConfigurationName(model.SplitName(model.ClaimName(name))), true
	}
	return model.ClaimName(name), folder == claimFolder
}

// ClaimPath is where a claim, or a ServerBootConfiguration, is on the status branch.
func ClaimPath(name model.ClaimName) string {
	ns, n := model.SplitName(name)
	if name.IsBootConfiguration() {
		return bootConfigurationFolder + ns + "/" + n + ".yaml"
	}
	return claimFolder + ns + "/" + n + ".yaml"
}

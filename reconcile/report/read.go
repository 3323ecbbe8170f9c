package report

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// Folder is where the status branch has the documents of a kind, and their path in the API.
type Folder string

// The folders of documents.
const (
	Servers            Folder = "servers"
	Claims             Folder = "serverclaims"
	BootConfigurations Folder = "serverbootconfigurations"
	BMCs               Folder = "bmcs"
	Endpoints          Folder = "endpoints"
	Maintenances       Folder = "servermaintenances"
	ReadinessRules     Folder = "serverreadinessrules"
)

// Folders are all folders of documents.
func Folders() []Folder {
	return []Folder{Servers, Claims, BootConfigurations, BMCs, Endpoints, Maintenances, ReadinessRules}
}

// Path is where the object of a name is on the status branch.
func (f Folder) Path(name string) string { return string(f) + "/" + name + ".yaml" }

// Noun is what commands call an object of the folder.
func (f Folder) Noun() string {
	switch f {
	case Claims:
		return "claim"
	case BootConfigurations:
		return "boot-configuration"
	case Maintenances:
		return "maintenance"
	case ReadinessRules:
		return "readiness-rule"
	case Servers, BMCs, Endpoints:
	}
	return strings.TrimSuffix(string(f), "s")
}

// FolderOf returns the folder of a kind as people name it, empty for a kind without one.
func FolderOf(word string) Folder {
	kind, _ := model.KindNamed(word)
	return folders[string(kind)]
}

var folders = map[string]Folder{
	string(model.KindServer): Servers, string(model.KindServerClaim): Claims, string(model.KindServerBootConfiguration): BootConfigurations,
	string(model.KindBMC): BMCs, string(model.KindEndpoint): Endpoints, string(model.KindServerMaintenance): Maintenances,
	string(model.KindServerReadinessRule): ReadinessRules,
}

// Folder is where the document is.
func (d *Document) Folder() Folder { return folders[d.Kind] }

// Name is the object's name, with its namespace if it has one.
func (d *Document) Name() string {
	if d.Metadata.Namespace == "" {
		return d.Metadata.Name
	}
	return d.Metadata.Namespace + "/" + d.Metadata.Name
}

// Path is where the document is on the status branch.
func (d *Document) Path() string { return d.Folder().Path(d.Name()) }

// InGit reports whether a ServerBootConfiguration is a claim of its own in Git, rather than made by
// Ingot for another claim.
func (d *Document) InGit() bool {
	rec, _ := d.Decided.(*model.ClaimRecord)
	return rec != nil
}

// Documents are those of one report, or of the files of the status branch. They are shared: callers
// must not change them.
type Documents struct {
	Fleet *Fleet // nil if it is missing
	lists map[Folder][]*Document
}

// NewDocuments returns the documents of a fleet.
func NewDocuments(fleet *Fleet, all []*Document) *Documents {
	d := &Documents{Fleet: fleet, lists: make(map[Folder][]*Document)}
	for _, doc := range all {
		d.lists[doc.Folder()] = append(d.lists[doc.Folder()], doc)
	}
	for _, list := range d.lists {
		slices.SortFunc(list, func(a, b *Document) int { return text.CompareNatural(a.Name(), b.Name()) })
	}
	return d
}

// ReadDocuments reads the files of the status branch. With an error it returns the readable ones.
func ReadDocuments(files map[string][]byte) (*Documents, error) {
	var fleet *Fleet
	var all []*Document
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(files)) {
		switch doc, err := ReadDocument(path, files[path]); of := doc.(type) {
		case *Fleet:
			fleet, errs = of, append(errs, err)
		case *Document:
			if errs = append(errs, err); err == nil {
				all = append(all, of)
			}
		}
	}
	return NewDocuments(fleet, all), errors.Join(errs...)
}

// ReadFleet reads fleet.yaml among the files of the status branch.
func ReadFleet(files map[string][]byte) (*Fleet, error) {
	if len(files[model.ReportFleet]) == 0 {
		return nil, fmt.Errorf("it has no %s: is it the status branch of Ingot?", model.ReportFleet)
	}
	f := new(Fleet)
	return f, model.DecodeDocument(model.ReportFleet, files[model.ReportFleet], f)
}

// WithCommitStatus returns the same documents, with the trouble of commit statuses in the fleet's.
func (d *Documents) WithCommitStatus(t Trouble) *Documents {
	fleet := *d.Fleet
	fleet.CommitStatus = &t
	return &Documents{&fleet, d.lists}
}

// List returns the documents of a folder by name, in which digits count as numbers.
func (d *Documents) List(f Folder) []*Document { return d.lists[f] }

// ErrUnknownObject is returned for a name that no object has.
var ErrUnknownObject = errors.New("not known")

// Get returns the object with exactly this name, nil if there is none.
func (d *Documents) Get(f Folder, name string) *Document {
	list := d.lists[f]
	at, found := slices.BinarySearchFunc(list, name, func(o *Document, name string) int { return text.CompareNatural(o.Name(), name) })
	if !found {
		return nil
	}
	return list[at]
}

// Find returns the object that a person names. A claim may be named without its namespace if only
// one has the name, an Endpoint by its MAC address.
func (d *Documents) Find(f Folder, name string) (*Document, error) {
	if o := d.Get(f, name); o != nil {
		return o, nil
	}
	mac, isMAC := model.ParseMAC(name)
	var same []*Document
	var known []string
	for _, o := range d.lists[f] {
		if spec, ok := o.Spec.(EndpointSpec); ok && isMAC {
			if its, ok := model.ParseMAC(spec.MACAddress); ok && its == mac {
				return o, nil
			}
		}
		if o.Metadata.Namespace != "" && o.Metadata.Name == name {
			same = append(same, o)
		}
		known = append(known, o.Name())
	}
	switch len(same) {
	case 0:
		return nil, fmt.Errorf("%s %s is %w%s", f.Noun(), name, ErrUnknownObject, meant(name, known))
	case 1:
		return same[0], nil
	}
	return nil, fmt.Errorf("%d %ss are called %s: give the namespace as well, such as %s", len(same), f.Noun(), name, same[0].Name())
}

// Matches reports whether a name, label, address or other short text of the object contains a text,
// in upper or lower case.
func (d *Document) Matches(part string) bool {
	part = strings.ToLower(part)
	for _, t := range d.searched() {
		if strings.Contains(strings.ToLower(t), part) {
			return true
		}
	}
	return false
}

func (d *Document) searched() []string {
	o := d.Overview()
	all := []string{
		d.Name(), o.Summary.State, string(o.Summary.Server), string(o.Summary.Claim), string(o.Summary.BMC), string(o.Summary.Power),
		o.Summary.Rack, o.Summary.Image,
	}
	all = append(all, o.Summary.Addresses...)
	for _, w := range o.Waiting {
		all = append(all, w.Reason, w.Message, string(w.Actor))
	}
	for key, value := range d.Metadata.Labels {
		all = append(all, key+"="+value)
	}
	switch spec := d.Spec.(type) {
	case ServerSpec:
		all = append(all, spec.SystemUUID)
	case EndpointSpec:
		all = append(all, spec.MACAddress)
	}
	switch st := d.Status.(type) {
	case ServerStatus:
		all = append(all, st.Manufacturer, st.Model, st.SerialNumber, string(st.InstallStage))
		for _, n := range st.NetworkInterfaces {
			all = append(all, n.MACAddress)
		}
	case BMCStatus:
		all = append(all, st.MACAddress, st.Manufacturer, st.Model, st.SerialNumber, st.FirmwareVersion)
	case EndpointStatus:
		all = append(all, st.Network)
	}
	return all
}

// meant asks whether one of the known names was meant: the nearest, or those that
// the name is part of.
func meant(name string, known []string) string {
	if near := model.Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	const most = 3
	var has []string
	for _, k := range known {
		if len(has) < most && strings.Contains(k, name) {
			has = append(has, k)
		}
	}
	if len(has) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(has, " or ") + "?"
}

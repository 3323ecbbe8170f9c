package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// RecordKind is what a record is of. The words are those of the store's buckets.
type RecordKind string

// The kinds of records. There is one of the fleet, and it has no name.
const (
	RecordFleet    RecordKind = "fleet"
	RecordServer   RecordKind = "server"
	RecordBMC      RecordKind = "bmc"
	RecordClaim    RecordKind = "claim"
	RecordEndpoint RecordKind = "endpoint"
)

// RecordName names one record.
type RecordName struct {
	Kind RecordKind
	Name string // a claim's is "namespace/name", the fleet's is empty
}

// String is the name with its kind.
func (n RecordName) String() string {
	if n.Name == "" {
		return string(n.Kind)
	}
	return string(n.Kind) + " " + n.Name
}

// BranchRecords is what the status branch says of the records.
type BranchRecords struct {
	model.Records
	// Serves says of servers which claim they serve, by the claims' own files.
	Serves map[model.ServerName]model.ClaimName
	// Unreadable are the paths of files that cannot be read. Their objects are unknown,
	// which is not the same as gone.
	Unreadable []string
}

// MaxFile bounds a file of the status branch that is decoded.
const MaxFile = 8 << 20

// ReadBranch reads the records back from the files of the status branch. One bad file
// is named, and the others are used.
func ReadBranch(files map[string][]byte) (BranchRecords, []error) {
	b := BranchRecords{Records: model.NewObserved().Records, Serves: make(map[model.ServerName]model.ClaimName)}
	var problems []error
	bad := func(path string, err error) {
		b.Unreadable = append(b.Unreadable, path)
		problems = append(problems, fmt.Errorf("read %s of the status branch: %w", path, err))
	}
	recorded := false
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name, ok := RecordAt(path)
		if !ok {
			continue
		}
		recorded = true
		if err := b.read(name, files[path]); err != nil {
			bad(path, err)
		}
	}
	if _, ok := files[model.ReportRevision]; recorded && !ok {
		bad(model.ReportRevision, errors.New("it is missing"))
	}
	return b, problems
}

// RecordAt is the record that a path of the status branch holds.
func RecordAt(path string) (RecordName, bool) {
	if path == model.ReportRevision {
		return RecordName{Kind: RecordFleet}, true
	}
	folder, file, _ := strings.Cut(path, "/")
	name, yamlFile := strings.CutSuffix(file, ".yaml")
	kind, ok := recordFolders[folder]
	if folder+"/" == bootConfigurationFolder {
		ns, n := model.SplitName(model.ClaimName(name))
		name = string(model.BootConfigurationName(ns, n))
	}
	if !ok || !yamlFile || name == "" {
		return RecordName{}, false
	}
	return RecordName{kind, name}, true
}

var recordFolders = map[string]RecordKind{
	"servers": RecordServer, "bmcs": RecordBMC, "serverclaims": RecordClaim, "serverbootconfigurations": RecordClaim,
	"endpoints": RecordEndpoint,
}

var errWithoutRecord = errors.New("it has no record")

// read takes over the record of one file.
func (b *BranchRecords) read(name RecordName, data []byte) error {
	if len(data) > MaxFile {
		return fmt.Errorf("it has %d bytes, of at most %d", len(data), MaxFile)
	}
	var doc objectFile
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	switch name.Kind {
	case RecordFleet:
		return b.readRevision(data)
	case RecordServer:
		return b.readServer(name.Name, doc.Record)
	case RecordBMC:
		return readInto(b.BMCs, name.Name, doc.Record, func(r *model.BMCRecord) string { return string(r.Name) })
	case RecordClaim:
		b.noteServed(model.ClaimName(name.Name), doc.Status)
		return readInto(b.Claims, name.Name, doc.Record, func(r *model.ClaimRecord) string { return string(r.Name) })
	case RecordEndpoint:
		return readInto(b.Endpoints, name.Name, doc.Record, func(r *model.EndpointRecord) string { return r.Name })
	}
	panic("no record is of kind " + string(name.Kind))
}

// objectFile is what is read of a file that is of one object.
type objectFile struct {
	Record json.RawMessage `json:"record"`
	Status json.RawMessage `json:"status"`
}

// readRevision reads the fleet's record.
func (b *BranchRecords) readRevision(data []byte) error {
	var doc struct {
		Record json.RawMessage `json:"record"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	return decodeRecord(doc.Record, &b.Fleet)
}

func (b *BranchRecords) readServer(name string, raw json.RawMessage) error {
	var rec model.ServerRecord
	switch err := decodeRecord(raw, &rec); {
	case err != nil:
		return err
	case string(rec.Name) != name:
		return fmt.Errorf("its record is of %q", rec.Name)
	case !slices.Contains(model.ServerStates, rec.Life.State):
		return fmt.Errorf("its record has the unknown state %q", rec.Life.State)
	}
	b.Servers[rec.Name] = &rec
	return nil
}

// noteServed notes which server a claim's status says that it has. That is no record,
// and counts even if the record beside it cannot be read.
func (b *BranchRecords) noteServed(claim model.ClaimName, status json.RawMessage) {
	var st struct {
		Server model.ServerName `json:"server"`
	}
	if json.Unmarshal(status, &st) == nil && st.Server != "" {
		b.Serves[st.Server] = claim
	}
}

// readInto reads a record of a kind that may have none: nothing was decided about the
// object yet.
func readInto[N ~string, R any](records map[N]*R, name string, raw json.RawMessage, nameOf func(*R) string) error {
	rec := new(R)
	err := decodeRecord(raw, rec)
	switch {
	case errors.Is(err, errWithoutRecord):
		return nil
	case err != nil:
		return err
	case nameOf(rec) != name:
		return fmt.Errorf("its record is of %q", nameOf(rec))
	}
	records[N(name)] = rec
	return nil
}

// decodeRecord decodes the record of a document into rec.
func decodeRecord(raw json.RawMessage, rec any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return errWithoutRecord
	}
	return json.Unmarshal(raw, rec)
}

package reconcile

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

func (n RecordName) String() string {
	if n.Name == "" {
		return string(n.Kind)
	}
	return string(n.Kind) + " " + n.Name
}

// BranchRecords is what the status branch says of the records.
type BranchRecords struct {
	model.Records
	// Head is the commit that was read; whoever reads the branch fills it in.
	Head string
	// Fence and Holder are of the Ingot that wrote it, Version is the newest version that
	// it shows. The trailers of its head count too, the higher of each.
	Fence   uint64
	Holder  model.Holder
	Version model.Version
	// MirrorFirst says that whoever wrote it did nothing disruptive that it did not show
	// before.
	MirrorFirst bool
	// Unreadable are the paths of files that cannot be read. Their objects are unknown,
	// which is not the same as gone.
	Unreadable []string
}

// maxBranchFile bounds a file of the status branch that is decoded.
const maxBranchFile = 8 << 20

// ReadBranch reads the records back from the files of the status branch. One bad file
// is named, and the others are used.
func ReadBranch(files map[string][]byte) (BranchRecords, []error) {
	b := BranchRecords{Records: model.NewObserved().Records}
	var problems []error
	bad := func(path string, err error) {
		b.Unreadable = append(b.Unreadable, path)
		problems = append(problems, fmt.Errorf("read %s of the status branch: %w", path, err))
	}
	recorded := false
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name, ok := recordAt(path)
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
	b.Version = newestVersion(b.Version, &b.Records)
	b.Fence = max(b.Fence, b.Version.Fence)
	return b, problems
}

// recordAt is the record that a path of the status branch holds.
func recordAt(path string) (RecordName, bool) {
	if path == model.ReportRevision {
		return RecordName{Kind: RecordFleet}, true
	}
	folder, file, _ := strings.Cut(path, "/")
	name, yamlFile := strings.CutSuffix(file, ".yaml")
	kind, ok := recordFolders[folder]
	if !ok || !yamlFile || name == "" {
		return RecordName{}, false
	}
	return RecordName{kind, name}, true
}

var recordFolders = map[string]RecordKind{
	"servers": RecordServer, "bmcs": RecordBMC, "serverclaims": RecordClaim, "endpoints": RecordEndpoint,
}

var errWithoutRecord = errors.New("it has no record")

// read takes over the record of one file.
func (b *BranchRecords) read(name RecordName, data []byte) error {
	if len(data) > maxBranchFile {
		return fmt.Errorf("it has %d bytes, of at most %d", len(data), maxBranchFile)
	}
	switch name.Kind {
	case RecordFleet:
		return b.readRevision(data)
	case RecordServer:
		return b.readServer(name.Name, data)
	case RecordBMC:
		return readInto(b.BMCs, name.Name, data, func(r *model.BMCRecord) string { return string(r.Name) })
	case RecordClaim:
		return readInto(b.Claims, name.Name, data, func(r *model.ClaimRecord) string { return string(r.Name) })
	case RecordEndpoint:
		return readInto(b.Endpoints, name.Name, data, func(r *model.EndpointRecord) string { return r.Name })
	}
	panic("no record is of kind " + string(name.Kind))
}

// readRevision reads the fleet's record, and who wrote it.
func (b *BranchRecords) readRevision(data []byte) error {
	var doc struct {
		Fence       uint64        `json:"fence"`
		Holder      model.Holder  `json:"holder"`
		Sequence    model.Version `json:"sequence"`
		MirrorFirst bool          `json:"mirrorFirst"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	b.Fence, b.Holder, b.Version, b.MirrorFirst = doc.Fence, doc.Holder, doc.Sequence, doc.MirrorFirst
	var fleet model.FleetRecord
	if err := decodeRecord(data, &fleet); err != nil {
		return err
	}
	b.Fleet = fleet
	return nil
}

func (b *BranchRecords) readServer(name string, data []byte) error {
	var rec model.ServerRecord
	switch err := decodeRecord(data, &rec); {
	case err != nil:
		return err
	case string(rec.Name) != name:
		return fmt.Errorf("its record is of %q", rec.Name)
	case !slices.Contains(model.ServerStates, rec.State):
		return fmt.Errorf("its record has the unknown state %q", rec.State)
	}
	b.Servers[rec.Name] = &rec
	return nil
}

// readInto reads a record of a kind that may have none: nothing was decided about the
// object yet.
func readInto[N ~string, R any](records map[N]*R, name string, data []byte, nameOf func(*R) string) error {
	rec := new(R)
	err := decodeRecord(data, rec)
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
func decodeRecord(data []byte, rec any) error {
	var doc struct {
		Record json.RawMessage `json:"record"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	if len(doc.Record) == 0 || string(doc.Record) == "null" {
		return errWithoutRecord
	}
	return json.Unmarshal(doc.Record, rec)
}

// newestVersion is the highest of v and the versions of all records.
func newestVersion(v model.Version, r *model.Records) model.Version {
	for _, of := range r.Versions() {
		if of.After(v) {
			v = of
		}
	}
	return v
}

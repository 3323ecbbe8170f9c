package report

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
)

// BranchRecords are the records on the status branch.
type BranchRecords struct {
	model.Records
	// Serves has the claim of each server, by the claims' own files.
	Serves map[model.ServerName]model.ClaimName
	// Unreadable are the paths of files that cannot be read. Their objects are unknown,
	// which is not the same as gone.
	Unreadable []string
	// FleetDocument and Documents are what could be read, in the order of paths.
	FleetDocument Fleet
	Documents     []*Document
}

// ReadBranch reads the records back from the files of the status branch. One bad file
// is named, and the others are used.
func ReadBranch(files map[string][]byte) (BranchRecords, []error) {
	b := BranchRecords{Records: model.NewObserved().Records, Serves: make(map[model.ServerName]model.ClaimName)}
	var problems []error
	bad := func(path string, err error) {
		b.Unreadable = append(b.Unreadable, path)
		problems = append(problems, fmt.Errorf("read the status branch: %w", err))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		doc, err := ReadDocument(path, files[path])
		switch d := doc.(type) {
		case *Fleet:
			b.FleetDocument, b.Fleet = *d, d.Decided
		case *Document:
			b.noteServed(path, d.Status)
			if err == nil {
				b.Documents = append(b.Documents, d)
				err = b.take(path, d.Decided)
			}
		default:
			continue
		}
		if err != nil {
			bad(path, err)
		}
	}
	if _, ok := files[model.ReportFleet]; !ok && len(b.Documents)+len(b.Unreadable) > 0 {
		bad(model.ReportFleet, errors.New(model.ReportFleet+" is missing"))
	}
	return b, problems
}

func (b *BranchRecords) take(path string, decided any) error {
	switch rec := decided.(type) {
	case *model.ServerRecord:
		if !slices.Contains(model.ServerStates, rec.Life.State) {
			return fmt.Errorf("%s: its record has the unknown state %q", path, rec.Life.State)
		}
		return keep(b.Servers, path, rec.Name, rec)
	case *model.BMCRecord:
		return keep(b.BMCs, path, rec.Name, rec)
	case *model.ClaimRecord:
		return keep(b.Claims, path, rec.Name, rec)
	case *model.EndpointRecord:
		return keep(b.Endpoints, path, rec.Name, rec)
	}
	if _, server := ServerAt(path); server {
		return fmt.Errorf("%s: it has no section %s", path, model.SectionDecided)
	}
	return nil // nothing was decided about it yet
}

// noteServed notes which server a claim's status names. It counts even if the claim's record
// cannot be read.
func (b *BranchRecords) noteServed(path string, status any) {
	claim, _ := ClaimAt(path)
	switch st := status.(type) {
	case ClaimStatus:
		b.Serves[st.Server] = claim
	case BootConfigurationStatus:
		b.Serves[st.Server] = claim
	}
	delete(b.Serves, "")
}

// keep takes over a record that is called as its file is.
func keep[N ~string, R any](records map[N]*R, path string, name N, rec *R) error {
	_, called := splitPath(path)
	if claim, ok := ClaimAt(path); ok {
		called = string(claim)
	}
	if string(name) != called {
		return fmt.Errorf("%s: its record is of %q", path, name)
	}
	records[name] = rec
	return nil
}

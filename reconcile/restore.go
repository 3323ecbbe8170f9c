package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// Restore reads records back from the files of the status branch, for a store
// that is empty (law 3). Servers come back marked Restored: nothing is done to
// any before the BMCs of those that are Reserved have answered. Files that
// cannot be read are returned as problems, and the rest is used.
func Restore(files map[string][]byte, now time.Time) (model.Records, []error) {
	r := model.Records{
		BMCs:    make(map[model.BMCName]*model.BMCRecord),
		Servers: make(map[model.ServerName]*model.ServerRecord),
		Claims:  make(map[model.ClaimName]*model.ClaimRecord),

		Endpoints: make(map[string]*model.EndpointRecord),
	}
	var problems []error
	for path, data := range files {
		if err := restoreFile(&r, path, data); err != nil {
			problems = append(problems, fmt.Errorf("restore %s of the status branch: %w", path, err))
		}
	}
	if len(r.Servers) > 0 {
		r.Fleet.Restored = now
	}
	return r, problems
}

func restoreFile(r *model.Records, path string, data []byte) error {
	folder, _, _ := strings.Cut(path, "/")
	switch folder {
	case model.ReportRevision:
		return recordOf(data, &r.Fleet)
	case "servers":
		var rec model.ServerRecord
		if err := recordOf(data, &rec); err != nil {
			return err
		}
		if rec.Name == "" || !slices.Contains(model.ServerStates, rec.State) {
			return fmt.Errorf("the record has no name or no known state")
		}
		rec.Restored = true
		r.Servers[rec.Name] = &rec
	case "bmcs":
		var rec model.BMCRecord
		if err := recordOf(data, &rec); err != nil {
			return err
		}
		if rec.Name != "" {
			r.BMCs[rec.Name] = &rec
		}
	case "endpoints":
		var rec model.EndpointRecord
		if err := recordOf(data, &rec); err != nil && !errors.Is(err, errNoRecord) { // one that only Git named had none once
			return err
		}
		if rec.Name != "" {
			r.Endpoints[rec.Name] = &rec
		}
	case "serverclaims":
		var rec model.ClaimRecord
		if err := recordOf(data, &rec); err != nil {
			return err
		}
		if rec.Name != "" {
			r.Claims[rec.Name] = &rec
		}
	}
	return nil
}

var errNoRecord = errors.New("it has no record")

// recordOf decodes the record of a document into rec.
func recordOf(data []byte, rec any) error {
	var doc struct {
		Record json.RawMessage `json:"record"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	if len(doc.Record) == 0 {
		return errNoRecord
	}
	return json.Unmarshal(doc.Record, rec)
}

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"ingot/model"
)

// Bounds of what a report may hold.
const (
	maxListEntries = 4096
	maxStringBytes = 4 << 10
	maxWipedDisks  = 1024
)

// saveReport makes what a server reported with t durable, unless it repeats what
// is stored or the ticket has meanwhile ended.
func saveReport[V any](ctx context.Context, r *Registry, t *model.Ticket, b bucket, v *V, repeats func(old *V) bool) error {
	k, isNew := key{b, string(t.Server)}, false
	err := r.write(ctx, func(d *draft) (batch, error) {
		rec := drafted[model.ServerRecord](d, key{bucketServer, string(t.Server)})
		if rec == nil || !rec.Ticket.Open() || rec.Ticket.ID != t.ID {
			return nil, ErrTicketSpent
		}
		if old := drafted[V](d, k); old != nil && repeats(old) {
			return nil, nil
		}
		isNew = true
		var e encoder
		e.set(k.bucket, k.name, v)
		return e.batch, e.err
	})
	if err != nil {
		return fmt.Errorf("save %s of server %s: %w", b, t.Server, err)
	}
	if isNew {
		r.log.Info("server reported", "server", string(t.Server), "report", string(b), "ticket", t.ID)
	}
	return nil
}

// sameJSON reports whether two values are stored as the same bytes.
func sameJSON(a, b any) bool {
	rawA, errA := json.Marshal(a)
	rawB, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(rawA) == string(rawB)
}

// checkProbeData refuses reports that are larger than any machine's.
func checkProbeData(data *model.ProbeData) error {
	if what := excess(reflect.ValueOf(data).Elem(), "data"); what != "" {
		return refuse(http.StatusBadRequest, "%s", what)
	}
	return nil
}

// excess returns what is too large within v, "" if nothing is. The strings need
// no check for UTF-8: decoding JSON made them so.
func excess(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > maxStringBytes {
			return fmt.Sprintf("%s has %d bytes, allowed are %d", path, v.Len(), maxStringBytes)
		}
	case reflect.Slice:
		if v.Len() > maxListEntries {
			return fmt.Sprintf("%s has %d entries, allowed are %d", path, v.Len(), maxListEntries)
		}
		for i := range v.Len() {
			if what := excess(v.Index(i), path); what != "" {
				return what
			}
		}
	case reflect.Struct:
		return excessInStruct(v, path)
	default: // numbers and the like have bounds of their own
	}
	return ""
}

func excessInStruct(v reflect.Value, path string) string {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() { // time.Time
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if what := excess(v.Field(i), path+"."+name); what != "" {
			return what
		}
	}
	return ""
}

// checkWipe refuses wipe reports that mean nothing.
func checkWipe(body model.ProbeWipe) error {
	switch body.Mode {
	case model.CleanupNone, model.CleanupQuick, model.CleanupSecure:
	default:
		return refuse(http.StatusBadRequest, "mode %.64q: allowed are none, quick and secure", body.Mode)
	}
	if len(body.Disks) > maxWipedDisks {
		return refuse(http.StatusBadRequest, "%d disks, allowed are %d", len(body.Disks), maxWipedDisks)
	}
	for i, disk := range body.Disks {
		if err := checkDisk(i, disk); err != nil {
			return err
		}
	}
	return nil
}

func checkDisk(i int, disk model.DiskWipe) error {
	switch disk.Result {
	case model.WipeDone, model.WipeFailed, model.WipeSkipped:
	default:
		return refuse(http.StatusBadRequest, "disks[%d]: result %.64q: allowed are wiped, failed and skipped", i, disk.Result)
	}
	if disk.Name == "" {
		return refuse(http.StatusBadRequest, "disks[%d]: it has no name", i)
	}
	if what := excess(reflect.ValueOf(disk), fmt.Sprintf("disks[%d]", i)); what != "" {
		return refuse(http.StatusBadRequest, "%s", what)
	}
	return nil
}

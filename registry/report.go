package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"ingot/model"
)

// Bounds of what a report may hold.
const (
	maxListEntries = 4096
	maxStringBytes = 4 << 10
	maxWipedDisks  = 1024

	// Progress is shown while it lasts, over and over: less of it is enough.
	maxProgressDisks = 256
	maxProgressBytes = 256
)

// report is what a server reported, and how it is kept.
type report[V any] struct {
	bucket bucket
	value  *V
	// repeats reports whether it is no news; old is nil when there is none.
	repeats func(d *draft, old *V) bool
	ends    []bucket // what it puts an end to
	level   slog.Level
}

// saveReport makes what a server reported with t durable, unless it is no news or
// the ticket has meanwhile ended.
func saveReport[V any](ctx context.Context, r *Registry, t *model.Ticket, v report[V]) error {
	k, isNew := key{v.bucket, string(t.Server)}, false
	err := r.write(ctx, func(d *draft) (batch, error) {
		newest, _ := newestTicket(d, t.Server)
		if !newest.Open() || newest.ID != t.ID {
			return nil, ErrTicketSpent
		}
		if v.repeats(d, drafted[V](d, k)) {
			return nil, nil
		}
		isNew = true
		var e encoder
		e.set(k.bucket, k.name, v.value)
		e.drop(k.name, v.ends...)
		return e.batch, e.err
	})
	if err != nil {
		return fmt.Errorf("save %s of server %s: %w", v.bucket, t.Server, err)
	}
	if isNew {
		r.log.Log(ctx, v.level, "server reported", "server", string(t.Server), "report", string(v.bucket), "ticket", t.ID)
	}
	return nil
}

// saveProbe keeps what a probe found.
func (q *request) saveProbe(t *model.Ticket, data model.ProbeData) error {
	v := &model.ProbeReport{Ticket: t.ID, ReceivedAt: q.now(), Data: data}
	return saveReport(q.Context(), q.registry, t, report[model.ProbeReport]{
		bucket: bucketProbe, value: v,
		repeats: func(_ *draft, old *model.ProbeReport) bool {
			return old != nil && old.Ticket == v.Ticket && sameJSON(old.Data, v.Data)
		},
	})
}

// saveBootState keeps that a server is up.
func (q *request) saveBootState(t *model.Ticket) error {
	v := &model.BootState{Ticket: t.ID, ReceivedAt: q.now()}
	return saveReport(q.Context(), q.registry, t, report[model.BootState]{
		bucket: bucketBootState, value: v,
		repeats: func(_ *draft, old *model.BootState) bool { return old != nil && old.Ticket == v.Ticket },
	})
}

// saveWipe keeps the outcome of a wipe. How far it was is of no interest any more.
func (q *request) saveWipe(t *model.Ticket, body model.ProbeWipe) error {
	v := &model.WipeReport{Ticket: t.ID, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks}
	return saveReport(q.Context(), q.registry, t, report[model.WipeReport]{
		bucket: bucketWipe, value: v, ends: []bucket{bucketWipeProgress},
		repeats: func(_ *draft, old *model.WipeReport) bool {
			return old != nil && old.Ticket == v.Ticket && old.Mode == v.Mode && sameJSON(old.Disks, v.Disks)
		},
	})
}

// saveWipeProgress keeps how far a wipe is, until its outcome is reported: what was
// on its way then is late.
func (q *request) saveWipeProgress(t *model.Ticket, body model.ProbeWipeProgress) error {
	v := &model.WipeProgress{Ticket: t.ID, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks}
	return saveReport(q.Context(), q.registry, t, report[model.WipeProgress]{
		bucket: bucketWipeProgress, value: v, level: slog.LevelDebug,
		repeats: func(d *draft, old *model.WipeProgress) bool {
			outcome := drafted[model.WipeReport](d, key{bucketWipe, string(t.Server)})
			return outcome != nil && outcome.Ticket == v.Ticket ||
				old != nil && old.Ticket == v.Ticket && old.Mode == v.Mode && sameJSON(old.Disks, v.Disks)
		},
	})
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

// checkWipe refuses wipe reports that mean nothing, or do not count.
func checkWipe(t *model.Ticket, body model.ProbeWipe) error {
	if err := checkCleanup(t, body.Mode); err != nil {
		return err
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

// checkWipeProgress refuses progress that means nothing, or of what will not count.
func checkWipeProgress(t *model.Ticket, body model.ProbeWipeProgress) error {
	if err := checkCleanup(t, body.Mode); err != nil {
		return err
	}
	if len(body.Disks) > maxProgressDisks {
		return refuse(http.StatusBadRequest, "%d disks, allowed are %d", len(body.Disks), maxProgressDisks)
	}
	for i, disk := range body.Disks {
		if what := faultOf(disk); what != "" {
			return refuse(http.StatusBadRequest, "disks[%d]: %s", i, what)
		}
	}
	return nil
}

// faultOf returns what is wrong with the progress of a disk, "" if nothing is.
func faultOf(disk model.DiskProgress) string {
	switch disk.Result {
	case "", model.WipeDone, model.WipeFailed, model.WipeSkipped:
	default:
		return fmt.Sprintf("result %.64q: allowed are none yet, wiped, failed and skipped", disk.Result)
	}
	switch {
	case disk.Name == "":
		return "it has no name"
	case disk.Percent < -1 || disk.Percent > 100:
		return fmt.Sprintf("percent %d: allowed are 0 to 100, and -1 when it is not known", disk.Percent)
	}
	return cmp.Or(unfit("name", disk.Name), unfit("serial", disk.Serial), unfit("method", disk.Method))
}

// unfit returns what is wrong with a text that is to be shown, "" if nothing is.
func unfit(name, text string) string {
	switch {
	case len(text) > maxProgressBytes:
		return fmt.Sprintf("%s has %d bytes, allowed are %d", name, len(text), maxProgressBytes)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Sprintf("%s %.64q has characters that cannot be shown", name, text)
	}
	return ""
}

// cleanupModes are the modes of a wipe, from the weakest to the strongest.
var cleanupModes = []string{model.CleanupNone, model.CleanupQuick, model.CleanupSecure}

// checkCleanup refuses tickets that are not for cleanup, and wipes that are less than
// an open one asks for: nobody is to get the server's disks then.
func checkCleanup(t *model.Ticket, mode string) error {
	strength := slices.Index(cleanupModes, mode)
	switch {
	case t.Purpose != model.PurposeCleanup:
		return refuse(http.StatusForbidden, "this token is not of a boot ticket for cleanup")
	case strength < 0:
		return refuse(http.StatusBadRequest, "mode %.64q: allowed are none, quick and secure", mode)
	case t.Open() && strength < slices.Index(cleanupModes, t.CleanupMode):
		return refuse(http.StatusBadRequest, "mode %s: %s was asked for, and a weaker wipe does not count", mode, t.CleanupMode)
	}
	return nil
}

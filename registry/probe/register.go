package probe

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"ingot/model"
)

const (
	maxListEntries = 4096
	// maxEntries is how many entries all lists of a report may have together: a list within a
	// list, or of something that nobody reads, counts too.
	maxEntries     = 16 * maxListEntries
	maxStringBytes = 4 << 10
)

// register takes the report of a probe. It answers 201 also for reports that are
// of no use any more, for a probe that once succeeded goes on for ever (R04).
func (e *endpoint) register(q *request) (answer, error) {
	done := answer{code: http.StatusCreated}
	var body model.ProbeRegistration
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	if err := checkProbeData(&body.Data); err != nil {
		return answer{}, err
	}
	t := rep.holder.Ticket
	switch {
	case t.Purpose == model.PurposeDiscovery && t.Open():
		return done, q.save(t, &model.ProbeReport{Ticket: t.ID, ReceivedAt: q.now(), Data: body.Data.Used()})
	case t.Purpose == model.PurposeClaim:
		return answer{}, refuse(http.StatusForbidden, "this token is of a claim's boot ticket; a claimed server reports to /bootstate")
	}
	return done, nil
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

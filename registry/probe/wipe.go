package probe

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"ingot/model"
)

// Bounds of what is reported of a wipe.
const (
	maxWipedDisks = 1024

	// Progress is shown while it lasts, over and over: less of it is enough.
	maxProgressDisks = 256
	maxProgressBytes = 256
)

// wipe takes the outcome of a wipe.
func (e *endpoint) wipe(q *request) (answer, error) {
	var body model.ProbeWipe
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if err := checkWipe(t, body); err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	return done, q.save(t, &model.WipeReport{Ticket: t.ID, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks})
}

// wipeProgress takes how far a wipe is.
func (e *endpoint) wipeProgress(q *request) (answer, error) {
	var body model.ProbeWipeProgress
	if err := q.read(&body); err != nil {
		return answer{}, err
	}
	rep, err := q.identify(body.SystemUUID)
	if err != nil {
		return answer{}, err
	}
	t := rep.offer.Ticket
	if err := checkWipeProgress(t, body); err != nil {
		return answer{}, err
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	return done, q.save(t, &model.WipeProgress{Ticket: t.ID, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks})
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

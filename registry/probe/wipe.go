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

func (e *endpoint) wipe(q *request) (answer, error) {
	var body model.ProbeWipe
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	return q.cleanup(rep, cleanupReport{
		mode: body.Mode, disks: len(body.Disks), maxDisks: maxWipedDisks,
		checkDisk: func(i int) error { return checkDisk(i, body.Disks[i]) },
		report: func(ticket string) model.ServerReport {
			return &model.WipeReport{Ticket: ticket, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks}
		},
	})
}

func (e *endpoint) wipeProgress(q *request) (answer, error) {
	var body model.ProbeWipeProgress
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	return q.cleanup(rep, cleanupReport{
		mode: body.Mode, disks: len(body.Disks), maxDisks: maxProgressDisks,
		checkDisk: func(i int) error { return checkDiskProgress(i, body.Disks[i]) },
		report: func(ticket string) model.ServerReport {
			return &model.WipeProgress{Ticket: ticket, ReceivedAt: q.now(), Mode: body.Mode, Disks: body.Disks}
		},
	})
}

// cleanupReport is what a probe reports of a wipe: its outcome, or how far it is.
type cleanupReport struct {
	mode            string
	disks, maxDisks int
	checkDisk       func(i int) error
	report          func(ticket string) model.ServerReport // what is stored of it
}

// cleanup takes a report of a wipe. One that means nothing is refused; one that comes when
// its ticket is no longer open is not stored.
func (q *request) cleanup(rep reporter, c cleanupReport) (answer, error) {
	t := rep.holder.Ticket
	if err := checkCleanup(t, c.mode); err != nil {
		return answer{}, err
	}
	if c.disks > c.maxDisks {
		return answer{}, refuse(http.StatusBadRequest, "%d disks, allowed are %d", c.disks, c.maxDisks)
	}
	for i := range c.disks {
		if err := c.checkDisk(i); err != nil {
			return answer{}, err
		}
	}
	done := answer{code: http.StatusCreated}
	if !t.Open() {
		return done, nil
	}
	return done, q.save(t, c.report(t.ID))
}

// checkDisk refuses the outcome of a disk's wipe that means nothing.
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

// checkDiskProgress refuses progress of a disk that means nothing, or cannot be shown.
func checkDiskProgress(i int, disk model.DiskProgress) error {
	switch disk.Result {
	case "", model.WipeDone, model.WipeFailed, model.WipeSkipped:
	default:
		return refuse(http.StatusBadRequest, "disks[%d]: result %.64q: allowed are none yet, wiped, failed and skipped", i, disk.Result)
	}
	switch {
	case disk.Name == "":
		return refuse(http.StatusBadRequest, "disks[%d]: it has no name", i)
	case disk.Percent < -1 || disk.Percent > 100:
		return refuse(http.StatusBadRequest, "disks[%d]: percent %d: allowed are 0 to 100, and -1 when it is not known", i, disk.Percent)
	}
	if what := cmp.Or(unfit("name", disk.Name), unfit("serial", disk.Serial), unfit("method", disk.Method)); what != "" {
		return refuse(http.StatusBadRequest, "disks[%d]: %s", i, what)
	}
	return nil
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

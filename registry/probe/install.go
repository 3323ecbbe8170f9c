package probe

import (
	"cmp"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"ingot/model"
)

// Bounds of what is reported of the writing of a disk image.
const (
	maxInstallText = 4 << 10
)

// install takes how far the probe has come that writes a ticket's disk image. What it says of
// itself is durable before it is answered: after model.DiskVerified the probe has its machine
// boot from the disk, and nothing is to write to that again.
func (e *endpoint) install(q *request) (answer, error) {
	var body model.ProbeInstall
	rep, err := q.read(&body)
	if err != nil {
		return answer{}, err
	}
	t := rep.holder.Ticket
	if err := checkInstall(t, &body); err != nil {
		return answer{}, err
	}
	body.Message, body.Warning = clipped(body.Message), clipped(body.Warning)
	return answer{code: http.StatusCreated}, q.save(t, &body)
}

// checkInstall refuses reports of an install that is not the ticket's, and those that mean
// nothing or cannot be shown.
func checkInstall(t *model.Ticket, told *model.ProbeInstall) error {
	switch {
	case t.Purpose != model.PurposeClaim || t.Disk == nil:
		return refuse(http.StatusForbidden, "this token is not of a boot ticket with a disk image")
	case told.Install != t.ID:
		return refuse(http.StatusConflict, "install %.64q is not the one of this boot ticket", told.Install)
	case !told.Stage.Known():
		return refuse(http.StatusBadRequest, "stage %.64q: allowed are %s", told.Stage, stageNames())
	case told.Disk == nil && told.Stage == model.DiskVerified && told.Reason == "":
		return refuse(http.StatusBadRequest, "disk: it is not said which was verified")
	}
	if what := unfit("reason", told.Reason); what != "" {
		return refuse(http.StatusBadRequest, "%s", what)
	}
	d := told.Disk
	if d == nil {
		return nil
	}
	if what := cmp.Or(unfit("name", d.Name), unfit("serial", d.Serial), unfit("wwid", d.WWID), unfit("model", d.Model)); what != "" {
		return refuse(http.StatusBadRequest, "disk: %s", what)
	}
	return nil
}

func stageNames() string {
	names := make([]string, len(model.DiskInstallStages))
	for i, s := range model.DiskInstallStages {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// clipped is a text as it is kept: it names disks as their firmware does, and may be of any
// length.
func clipped(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	if len(text) <= maxInstallText {
		return text
	}
	cut := maxInstallText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

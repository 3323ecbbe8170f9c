package forge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ingot/model"
)

const (
	oldHash = "1111111111111111111111111111111111111111"
	newHash = "2222222222222222222222222222222222222222"
	oldRev  = model.Revision("main@sha1:" + oldHash)
	newRev  = model.Revision("main@sha1:" + newHash)
)

// inForce is what is desired once a revision came into force.
func inForce(r model.Revision, change ...func(*model.Desired)) *model.Desired {
	d := model.NewDesired()
	d.Revision, d.Source.Observed = r, r
	for _, f := range change {
		f(d)
	}
	return d
}

func source(observed model.Revision, reason, message string) func(*model.Desired) {
	return func(d *model.Desired) {
		d.Source = model.SourceState{Observed: observed, Reason: reason, Message: message}
	}
}

func problems(all ...model.Problem) func(*model.Desired) {
	return func(d *model.Desired) { d.Problems = all }
}

func TestWhatIsSaidOfACommit(t *testing.T) {
	wrong := model.Problem{Severity: model.SeverityError, File: "claims/db.yaml", Line: 4, Message: "unknown field powr, did you mean power?"}
	odd := model.Problem{Severity: model.SeverityWarning, File: "a.yaml", Line: 1, Message: "odd"}
	for title, tc := range map[string]struct {
		known Known
		want  Verdict // zero = nothing
	}{
		"nothing before Git was read": {},
		"nothing of a revision that was kept over a restart": {
			known: Known{Desired: inForce(oldRev)},
		},
		"pending once it is seen": {
			known: Known{Seen: newRev, Desired: inForce(oldRev), Planned: oldRev},
			want:  Verdict{Commit: newHash, State: Pending, Description: "seen, and not yet in force"},
		},
		"nothing of one that is seen at a start": {
			known: Known{Seen: newRev, Desired: inForce(oldRev)},
		},
		"nothing of the one in force before it was observed anew": {
			known: Known{Seen: oldRev, Desired: inForce(oldRev, source("", "", ""))},
		},
		"success of one that was planned with before it was observed anew": {
			known: Known{Seen: oldRev, Desired: inForce(oldRev, source("", "", "")), Planned: oldRev},
			want:  Verdict{Commit: oldHash, State: Success, Description: "in force"},
		},
		"pending until it was planned with": {
			known: Known{Seen: newRev, Desired: inForce(newRev), Planned: oldRev},
			want:  Verdict{Commit: newHash, State: Pending, Description: "read, and about to be in force"},
		},
		"success once it was": {
			known: Known{Seen: newRev, Desired: inForce(newRev), Planned: newRev},
			want:  Verdict{Commit: newHash, State: Success, Description: "in force"},
		},
		"success with warnings": {
			known: Known{Seen: newRev, Desired: inForce(newRev, problems(odd, odd)), Planned: newRev},
			want:  Verdict{Commit: newHash, State: Success, Description: "in force, with 2 warnings"},
		},
		"failure with the first error": {
			known: Known{Seen: newRev, Desired: inForce(newRev, problems(odd, wrong, wrong)), Planned: newRev},
			want: Verdict{
				Commit: newHash, State: Failure,
				Description: "2 errors, the first in claims/db.yaml:4: unknown field powr, did you mean power?",
			},
		},
		"failure with one that has no line": {
			known: Known{Desired: inForce(newRev, problems(model.Problem{Severity: model.SeverityError, File: "b.yaml", Message: "too large"}))},
			want:  Verdict{Commit: newHash, State: Failure, Description: "1 error, the first in b.yaml: too large"},
		},
		"failure while what it lacks stays in force": {
			known: Known{Desired: inForce(newRev, func(d *model.Desired) { d.Absent = make([]model.Absence, 2) }), Planned: newRev},
			want: Verdict{
				Commit: newHash, State: Failure, Description: "lacks 2 objects that no commit removed: in force until that is approved",
			},
		},
		"failure of one that is rejected": {
			known: Known{
				Seen:    newRev,
				Desired: inForce(oldRev, source(newRev, model.SourceRejected, string(newRev)+" has errors; main@sha1:1 stays in force")),
				Planned: oldRev,
			},
			want: Verdict{Commit: newHash, State: Failure, Description: "RevisionRejected: has errors; main@sha1:1 stays in force"},
		},
		"failure of the first one": {
			known: Known{Seen: newRev, Source: model.SourceState{Observed: newRev, Reason: model.SourcePathMissing}},
			want:  Verdict{Commit: newHash, State: Failure, Description: "PathMissing"},
		},
		"success stays while Git cannot be read": {
			known: Known{Seen: newRev, Desired: inForce(newRev, source(newRev, model.SourceFetchFailed, "timeout")), Planned: newRev},
			want:  Verdict{Commit: newHash, State: Success, Description: "in force"},
		},
		"nothing new of a rejected one while Git cannot be read": {
			known: Known{Seen: newRev, Desired: inForce(oldRev, source(newRev, model.SourceFetchFailed, "timeout")), Planned: oldRev},
		},
		"nothing of what has no commit": {
			known: Known{Desired: inForce("none"), Planned: "none"},
		},
	} {
		got, ok := VerdictOf(tc.known)
		if ok != (tc.want != Verdict{}) || ok && got != tc.want {
			t.Errorf("%s: got %+v, %v; want %+v", title, got, ok, tc.want)
		}
	}
}

func TestADescriptionIsCutBetweenWords(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{text: "a\nb\x1b[31m c", want: "a b [31m c"},
		{text: strings.Repeat("ä", 140), want: strings.Repeat("ä", 140)},
		{text: strings.Repeat("ä", 141), want: strings.Repeat("ä", 139) + "…"},
		{text: strings.Repeat("word ", 40), want: strings.TrimSpace(strings.Repeat("word ", 28)) + "…"},
		{text: "wrong \xff byte", want: "wrong byte"},
	} {
		got := short(tc.text)
		if got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
		if n := utf8.RuneCountInString(got); n > 140 {
			t.Errorf("%d characters", n)
		}
	}
}

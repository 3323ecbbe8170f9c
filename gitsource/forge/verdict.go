package forge

import (
	"fmt"
	"strings"
	"unicode"

	"ingot/model"
)

// State is what a commit status says.
type State string

// The states.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Verdict is what is said of a commit.
type Verdict struct {
	Commit      string `json:"commit"`
	State       State  `json:"state"`
	Description string `json:"description"`
}

// Known is what a verdict follows from.
type Known struct {
	// Seen is the newest revision that was fetched; it may not be judged yet.
	Seen model.Revision
	// Desired is what is in force, nil before the first revision.
	Desired *model.Desired
	// Source is the state of the branch while there is no Desired, which has its own.
	Source model.SourceState
	// Planned is the revision that was planned with last, "" before the first plan.
	Planned model.Revision
}

// VerdictOf says what became of the newest revision. It returns false while there is
// nothing to say that was not said before: an Ingot that starts says of no revision that it
// is pending, for the one before has most likely said more.
func VerdictOf(k Known) (Verdict, bool) {
	source, inForce := k.Source, model.Revision("")
	if k.Desired != nil {
		source, inForce = k.Desired.Source, k.Desired.Revision
	}
	switch {
	case k.Seen != "" && k.Seen != source.Observed && k.Seen != inForce:
		v, ok := verdict(k.Seen, Pending, "seen, and not yet in force")
		return v, ok && k.Planned != ""
	case source.Observed != "" && source.Observed != inForce:
		if source.Reason == model.SourceFetchFailed || source.Reason == "" {
			return Verdict{}, false // why it is not in force was said before
		}
		return verdict(source.Observed, Failure, reasonText(source))
	case k.Desired == nil:
		return Verdict{}, false
	}
	return k.verdictInForce()
}

// verdictInForce is what is said of a revision that came into force.
func (k Known) verdictInForce() (Verdict, bool) {
	d := k.Desired
	errors, warnings, first := count(d.Problems)
	switch {
	case errors > 0:
		return verdict(d.Revision, Failure, fmt.Sprintf("%s, the first in %s", plural(errors, "error"), problemText(first)))
	case len(d.Absent) > 0:
		return verdict(d.Revision, Failure, fmt.Sprintf("lacks %s that no commit removed: in force until that is approved",
			plural(len(d.Absent), "object")))
	case k.Planned == "":
		return Verdict{}, false
	case k.Planned != d.Revision:
		return verdict(d.Revision, Pending, "read, and about to be in force")
	case warnings > 0:
		return verdict(d.Revision, Success, "in force, with "+plural(warnings, "warning"))
	}
	return verdict(d.Revision, Success, "in force")
}

func verdict(r model.Revision, s State, text string) (Verdict, bool) {
	return Verdict{Commit: r.Commit(), State: s, Description: short(text)}, isHex(r.Commit())
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdef") == ""
}

// reasonText says why a revision is not in force, without the revision, which the commit is
// itself.
func reasonText(s model.SourceState) string {
	text := strings.TrimPrefix(s.Message, string(s.Observed)+" ")
	if text == "" {
		return s.Reason
	}
	return s.Reason + ": " + text
}

func count(problems []model.Problem) (errors, warnings int, first model.Problem) {
	for _, p := range problems {
		switch {
		case p.Severity != model.SeverityError:
			warnings++
			continue
		case errors == 0:
			first = p
		}
		errors++
	}
	return errors, warnings, first
}

func problemText(p model.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return p.File + ": " + p.Message
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// maxDescription is how long GitHub lets a description be, in characters. Others take more.
const maxDescription = 140

// short is text in one line, cut between two words if it is too long.
func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(runes) <= maxDescription {
		return string(runes)
	}
	end := maxDescription - 1
	for at := end; at > maxDescription/2; at-- {
		if runes[at] == ' ' {
			end = at
			break
		}
	}
	return strings.TrimRight(string(runes[:end]), " ,;:") + "…"
}

// printable is text without what a terminal would act upon.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

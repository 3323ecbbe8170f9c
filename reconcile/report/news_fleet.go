package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ingot/model"
	"ingot/model/text"
)

// fleetNews says what all servers have in common: whether the branch can be read, and
// what waits for an approval.
func fleetNews(old, now *model.Document, d *model.Desired) []news {
	if now == nil || old == now {
		return nil
	}
	is := now.Object.(*Fleet)
	if old == nil {
		return problemNews(nil, is.Problems, d)
	}
	was := old.Object.(*Fleet)
	var all []news
	add := func(name, text string) { all = append(all, news{name: name, outcome: outcome{weighsFleet, text}}) }
	if reasonOf(was.Trouble) != reasonOf(is.Trouble) {
		branch, _, _ := strings.Cut(string(cmp.Or(is.Applied, is.Observed)), "@")
		add(strings.TrimSpace("branch "+harmless(branch)), cmp.Or(reasonOf(is.Trouble), "in force again as it is"))
	}
	if n := held(is); n != held(was) {
		add("guard", holdsText(is, n))
	}
	if n := absent(is); n != absent(was) {
		add("absent without a commit", absentNews(is, n))
	}
	return append(all, problemNews(was.Problems, is.Problems, d)...)
}

func reasonOf(s *Trouble) string {
	if s == nil {
		return ""
	}
	return s.Reason
}

// held counts the steps that the guard holds back.
func held(r *Fleet) (n int) {
	for _, g := range r.Decided.Holds {
		n += len(g.Steps)
	}
	return n
}

// holdsText names the first of the steps that the guard holds.
func holdsText(r *Fleet, n int) string {
	at := slices.IndexFunc(r.Decided.Holds, func(h model.GuardHold) bool { return len(h.Steps) > 0 })
	if at < 0 {
		return "holds nothing any more"
	}
	first := r.Decided.Holds[at].Steps[0]
	says := fmt.Sprintf("holds %s of %s", first.Action, first.Server)
	if first.Claim != "" {
		says += " for " + string(first.Claim)
	}
	return says + others(n)
}

func absent(f *Fleet) int { return len(f.Decided.Absent) + f.Decided.AbsentMore }

func absentNews(r *Fleet, n int) string {
	switch {
	case n == 0:
		return "nothing any more"
	case len(r.Decided.Absent) == 0:
		return text.Plural(n, "object")
	}
	return r.Decided.Absent[0].Identity.String() + others(n)
}

// others says how many of n there are beside the one that is named.
func others(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-1)
}

// problemNews says which manifests have other problems than before, and which have none now.
func problemNews(before, now []model.Problem, d *model.Desired) []news {
	was, is := byFile(before), byFile(now)
	var all []news
	for _, f := range is {
		if i := slices.IndexFunc(was, f.same); i < 0 || !slices.Equal(was[i].problems, f.problems) {
			all = append(all, f.news())
		}
	}
	for _, f := range was {
		if !slices.ContainsFunc(is, f.same) {
			result := "valid"
			if !d.HasFile(f.name) {
				result = "removed"
			}
			all = append(all, news{name: harmless(f.name), outcome: outcome{weighsGoal, result}})
		}
	}
	return all
}

// wrongFile is a manifest with what is wrong in it, the worst first.
type wrongFile struct {
	name     string
	problems []model.Problem
}

func (f wrongFile) same(other wrongFile) bool { return f.name == other.name }

// news names the file, the line and the object. The message stays in fleet.yaml: people
// wrote it, and forges act upon what they find in commits.
func (f wrongFile) news() news {
	first := f.problems[0]
	n := news{name: harmless(f.name), outcome: outcome{weighsTrouble, "wrong"}}
	if first.Line > 0 {
		n.name = fmt.Sprintf("%s:%d", n.name, first.Line)
	}
	if first.Severity == model.SeverityWarning {
		n.outcome = outcome{weighsStep, "warning"}
	}
	if first.Object != "" {
		n.text += " (" + harmless(first.Object) + ")"
	}
	n.text += others(len(f.problems))
	return n
}

func byFile(all []model.Problem) []wrongFile {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b model.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Severity, b.Severity))
	})
	var files []wrongFile
	for _, p := range sorted {
		if n := len(files); n == 0 || files[n-1].name != p.File {
			files = append(files, wrongFile{name: p.File})
		}
		last := &files[len(files)-1]
		last.problems = append(last.problems, p)
	}
	return files
}

// harmless is a name from outside in a commit message: what a forge would take for a
// mention, an issue or a link is taken out.
func harmless(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/+=, ()", r) {
			return r
		}
		return '?'
	}, name)
}

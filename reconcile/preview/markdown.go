package preview

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ingot/model"
	"ingot/model/text"
)

// Marker is the line by which a CI job finds the comment that it made before.
const Marker = "<!-- ingot plan -->"

// maxMarkdown bounds a comment, in bytes: forges take 65,536 characters at most.
const (
	maxMarkdown     = 60_000
	maxHeldPart     = 15_000
	maxProblemsPart = 15_000
	maxNotesPart    = 5_000
)

// Markdown is the preview as a comment on a pull request: HTML and Markdown of names and
// messages, which others write, are shown and not obeyed.
func (p *Preview) Markdown() string {
	// However much happens, there is room for what goes below it.
	held, problems, notes := page{left: maxHeldPart}, page{left: maxProblemsPart}, page{left: maxNotesPart}
	held.held(p.Held)
	problems.problems(p.Problems)
	notes.folded("Notes", len(p.Notes), func(i int) string { return "- " + prose(p.Notes[i]) })
	m := page{left: maxMarkdown - held.Len() - problems.Len() - notes.Len()}
	m.line("%s", Marker)
	m.line("**%s.**", prose(p.Summary()))
	m.line("")
	m.line("What merging %s into %s does to the machines.", code(p.commit()), code(string(p.Base.Short())))
	m.effects(p.Effects)
	return m.String() + held.String() + problems.String() + notes.String()
}

// page is what is written of a comment.
type page struct {
	strings.Builder
	left int
}

// reserve is kept for the ends of what is folded and for what says that something is cut.
const reserve = 400

// line writes a line, if there is room for it.
func (m *page) line(format string, args ...any) bool {
	line := fmt.Sprintf(format, args...) + "\n"
	if len(line) > m.left-reserve {
		return false
	}
	m.left -= len(line)
	m.WriteString(line)
	return true
}

// end writes a line that there is always room for.
func (m *page) end(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	m.left -= len(line)
	m.WriteString(line)
}

func (m *page) effects(all []Effect) {
	if len(all) == 0 {
		return
	}
	m.line("")
	m.line("| | What | Claim | What happens |")
	m.line("|---|---|---|---|")
	for i := range all {
		if !m.line("%s", row(&all[i])) {
			m.end("")
			m.end("%d of %d lines are cut here; `ingot plan` shows all.", len(all)-i, len(all))
			return
		}
	}
}

func row(e *Effect) string {
	mark, says := "", prose(e.Message)
	if e.Destructive {
		mark = "**!**"
	}
	if e.Held {
		says += " **(held back by the guard)**"
	}
	if e.Waits != "" {
		says += "<br>" + prose("it is done only after what the server waits for: "+e.Waits)
	}
	if e.Next != "" {
		says += "<br>" + prose(e.Next)
	}
	kind, name, _ := strings.Cut(e.What(), " ")
	claim := ""
	if e.Claim != "" && kind != "claim" {
		claim = code(string(e.Claim))
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s |", mark, kind, code(name), claim, says)
}

func (m *page) held(all []Held) {
	for i := range all {
		h := &all[i]
		if !m.line("\n**The guard will hold back %s**: %s.", prose(h.Limits()), prose(h.Next())) {
			m.end("\n%s cut here; `ingot plan` shows all.", text.Plural(len(all)-i, "more list"))
			return
		}
		if h.Approve != "" {
			m.line("")
			m.line("%s", code(h.Approve))
		}
		m.folded("The steps", len(h.Steps), func(i int) string { return "- " + code(StepText(h.Steps[i])) })
	}
}

func (m *page) problems(all []model.Problem) {
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b model.Problem) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	m.folded(WrongTitle, len(ordered), func(i int) string {
		p := ordered[i]
		at, says := p.File, string(p.Severity)
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		for _, part := range []string{strings.TrimSpace(p.Object + " " + p.Field), p.Message} {
			if part != "" {
				says += ": " + part
			}
		}
		return fmt.Sprintf("- %s: %s", code(at), prose(says))
	})
}

// folded writes a list that is shown once it is asked for.
func (m *page) folded(title string, n int, entry func(int) string) {
	if n == 0 || !m.line("\n<details><summary>%s (%d)</summary>\n", title, n) {
		return
	}
	for i := range n {
		if !m.line("%s", entry(i)) {
			m.end("- %s cut here; <code>ingot plan</code> shows all.", text.Plural(n-i, "more line"))
			break
		}
	}
	m.end("\n</details>")
}

// code is a name as it is, in a fixed pitch: forges obey nothing within it.
func code(s string) string { return "<code>" + entities(s) + "</code>" }

// entities writes all but letters, digits and blanks in a way that means nothing to HTML and
// to Markdown.
func entities(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		switch {
		case r == ' ', r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case r < unicode.MaxASCII:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// joiner is U+2060, which is not seen and makes two words of one.
const joiner = "\u2060"

// references are what forges make links and messages of in text, and where these are broken.
var references = strings.NewReplacer(
	"@", "@"+joiner, "#", "#"+joiner, "!", "!"+joiner, "~", "~"+joiner, "%", "%"+joiner, "$", "$"+joiner, "&", "&"+joiner,
	"://", ":"+joiner+"//", "www.", "www"+joiner+".", "GH-", "GH"+joiner+"-", "[", "["+joiner, "*", "*"+joiner,
)

// prose is a sentence that may hold what others wrote.
func prose(s string) string { return plainPunctuation.Replace(entities(references.Replace(s))) }

// plainPunctuation is what needs no entity between words.
var plainPunctuation = strings.NewReplacer("&#44;", ",", "&#59;", ";", "&#40;", "(", "&#41;", ")", "&#47;", "/", "&#39;", "'")

// oneLine is a text without line ends, control characters, and those that turn the direction
// of writing around.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case string(r) == joiner:
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
}

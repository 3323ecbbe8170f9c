package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ingot/model"
	"ingot/reconcile/report"
)

// Marker is the line by which a CI job finds the comment that it made before.
const Marker = "<!-- ingot plan -->"

// The parts of a comment are bounded, in bytes: forges take 65,536 characters at most.
const (
	maxMarkdown = 60_000
	maxPart     = 15_000
	maxFolded   = 5_000
	reserve     = 200 // of each part, for the text after its lines
)

// Markdown is the preview as a comment on a pull request. HTML and Markdown in names and messages, which
// others write, are shown as plain text.
func (p *Preview) Markdown() string {
	problems := slices.SortedStableFunc(slices.Values(p.Problems), func(a, b model.Problem) int { return cmp.Compare(a.Severity, b.Severity) })
	rest := part("", each(p.Held, holdText), maxPart) +
		folded(WrongTitle, each(problems, func(p model.Problem) string { return "- " + prose(p.String()) }), maxPart) +
		folded("Notes", each(p.Notes, func(n string) string { return "- " + prose(n) }), maxFolded)
	head := fmt.Sprintf("%s\n**%s.**\n\nWhat merging %s into %s does to the machines.\n", Marker, prose(p.Summary()), code(p.commit()), code(string(p.Base.Short())))
	return head + part("\n| | What | Claim | What happens |\n|---|---|---|---|\n", each(p.Effects, row), maxMarkdown-len(head)-len(rest)) + rest
}

func each[T any](all []T, text func(T) string) []string {
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = text(all[i])
	}
	return lines
}

// part writes a head and as many lines below it as there is room for, nothing if there are none.
func part(head string, lines []string, room int) string {
	if len(lines) == 0 {
		return ""
	}
	for i, line := range lines {
		if len(head)+len(line) > room-reserve {
			return head + fmt.Sprintf("\n%d of %d lines are cut here; `ingot plan` shows all.\n", len(lines)-i, len(lines))
		}
		head += line + "\n"
	}
	return head
}

// folded is a list that a reader can open.
func folded(title string, lines []string, room int) string {
	if len(lines) == 0 {
		return ""
	}
	return part(fmt.Sprintf("\n<details><summary>%s (%d)</summary>\n\n", title, len(lines)), lines, room) + "\n</details>\n"
}

func row(e Effect) string {
	mark, says, claim := "", prose(e.Message), ""
	if e.Destructive {
		mark = "**!**"
	}
	if e.Held {
		says += " **(held back by the guard)**"
	}
	if e.Waits != "" {
		says += "<br>" + prose(WaitsText+e.Waits)
	}
	if e.Next != "" {
		says += "<br>" + prose(e.Next)
	}
	kind, name, _ := strings.Cut(e.What(), " ")
	if e.Claim != "" && kind != "claim" {
		claim = code(string(e.Claim))
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s |", mark, kind, code(name), claim, says)
}

func holdText(h Held) string {
	text := fmt.Sprintf("\n**The guard will hold back %s**: %s.\n", prose(h.Limits()), prose(h.Next()))
	if h.Approve != "" {
		text += "\n" + code(h.Approve) + "\n"
	}
	return text + folded("The steps", each(h.Steps, func(d model.Disruption) string { return "- " + code(report.EffectText(d)) }), maxFolded)
}

// code is a name as it is, in a fixed pitch: forges interpret nothing within it.
func code(s string) string { return "<code>" + entities(s) + "</code>" }

// plainPunctuation has no meaning in HTML and Markdown behind a letter. Before the first letter it may begin a list.
const plainPunctuation = `-,.;:()/'"+=?`

// entities escapes what has a meaning in HTML and Markdown. Line ends become blanks. Control characters, and those that
// change the direction of writing, are dropped.
func entities(s string) string {
	var b strings.Builder
	begun := false
	for i, r := range s {
		link := strings.HasPrefix(s[i:], "://") || r == '.' && strings.HasSuffix(s[:i], "www")
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case string(r) != joiner && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar):
		case r > unicode.MaxASCII, unicode.IsLetter(r), unicode.IsDigit(r), begun && !link && strings.ContainsRune(plainPunctuation, r):
			b.WriteRune(r)
			begun = begun || unicode.IsLetter(r)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return b.String()
}

// joiner is U+2060, which is invisible and splits a word in two.
const joiner = "\u2060"

// references are what forges turn into links and mentions in text, and where these are broken.
var references = strings.NewReplacer(
	"@", "@"+joiner, "#", "#"+joiner, "!", "!"+joiner, "~", "~"+joiner, "%", "%"+joiner, "$", "$"+joiner, "&", "&"+joiner,
	"://", ":"+joiner+"//", "www.", "www"+joiner+".", "GH-", "GH"+joiner+"-", "[", "["+joiner, "*", "*"+joiner,
)

// prose is a sentence that may hold what others wrote.
func prose(s string) string { return entities(references.Replace(s)) }

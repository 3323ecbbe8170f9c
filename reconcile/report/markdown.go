package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCell is how many letters of a text a cell of a table shows: the file that the row
// links to has all of it.
const maxCell = 240

// joiner is an invisible letter that no line is broken at. Put between the letters that a
// forge makes links of, mentions of people above all, it keeps them mere text.
const joiner = "&#8288;"

// markup is what Markdown, HTML or a forge would act upon, and what to write for it.
var markup = map[rune]string{
	'&': "&amp;", '<': "&lt;", '>': "&gt;", '|': "&#124;", '`': "&#96;",
	'\\': `\\`, '*': `\*`, '_': `\_`, '[': `\[`, ']': `\]`,
	'@': "@" + joiner, '#': "#" + joiner, '!': "!" + joiner, '~': `\~` + joiner, '$': "$" + joiner, '%': "%" + joiner,
	'^': "^" + joiner,
}

// plainByte are the bytes that stand for themselves. There is no w, for www. makes a link.
var plainByte = func() (plain [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvxyzABCDEFGHIJKLMNOPQRSTUVXYZ0123456789 -,.;:=()/+'\"") {
		plain[c] = true
	}
	return plain
}()

// isPlain reports whether a text has nothing but what stands for itself everywhere.
func isPlain(s string) bool {
	if len(s) > maxCell || strings.Contains(s, "://") {
		return false
	}
	for i := range len(s) {
		if !plainByte[s[i]] {
			return false
		}
	}
	return true
}

// cell makes a text from outside fit for one cell of a Markdown table: one line, bounded,
// in which nothing is markup, a link or a mention.
func cell(s string) string {
	if isPlain(s) {
		return strings.TrimSpace(s)
	}
	if utf8.RuneCountInString(s) > maxCell {
		s = string([]rune(s)[:maxCell-1]) + "…"
	}
	var b strings.Builder
	for i, r := range s {
		switch escaped, special := markup[r]; {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r == utf8.RuneError, !unicode.IsPrint(r):
		case r == ':' && strings.HasPrefix(s[i:], "://"):
			b.WriteString(":" + joiner)
		case r == '.' && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			b.WriteString(joiner + ".")
		case special:
			b.WriteString(escaped)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// link is a name that leads to a file of the status branch. Paths with anything but what
// names consist of do not become links.
func link(name, path string) string {
	if strings.IndexFunc(path, func(r rune) bool { return !pathRune(r) }) >= 0 {
		return cell(name)
	}
	return "[" + cell(name) + "](" + path + ")"
}

// code is a name as it is to be copied, if it consists of what names consist of.
func code(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !pathRune(r) && r != '@' && r != ':' && r != ' ' }) >= 0 || s == "" {
		return cell(s)
	}
	return "`" + s + "`"
}

// pathRune reports whether a letter stands for itself in the address of a link.
func pathRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' || r == '/'
}

func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// tableHead is the first two lines of a Markdown table.
func tableHead(titles ...string) string {
	return tableRow(titles...) + strings.Repeat("|---", len(titles)) + "|\n"
}

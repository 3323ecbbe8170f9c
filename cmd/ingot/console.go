package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// console is what a command reads from and writes to.
type console struct {
	in         io.Reader
	out, err   io.Writer
	env        []string
	terminal   bool                       // out is a terminal
	dimensions func() (width, height int) // of the terminal, if out is one
	person     bool                       // in is a terminal: there is somebody to ask
	daemon     string                     // where a daemon of this machine listens, "" = defaultAddress
	format     string                     // text or json
	log        *slog.Logger
	plans      bool  // the command is plan
	unwritten  error // the first error of printf
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func sizeOf(f *os.File) func() (width, height int) {
	return func() (width, height int) {
		width, height, _ = term.GetSize(int(f.Fd()))
		return width, height
	}
}

// The size of a terminal that does not say it.
const (
	usualWidth  = 80
	usualHeight = 24
)

// size is that of the terminal, 0 if there is none: what is not for a person is one line each.
func (c *console) size() (width, height int) {
	if !c.terminal {
		return 0, 0
	}
	if c.dimensions != nil {
		width, height = c.dimensions()
	}
	if width <= 0 || height <= 0 {
		return usualWidth, usualHeight
	}
	return width, height
}

func (c *console) lookup(name string) string {
	for _, entry := range slices.Backward(c.env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func (c *console) json() bool { return c.format == "json" }

func (c *console) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printf prints. That it cannot is found out at the end of the command, see execute.
func (c *console) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(c.out, format, args...); err != nil && c.unwritten == nil {
		c.unwritten = err
	}
}

// colour is an ANSI colour (ECMA-48, SGR).
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
	bold   colour = "1"
	faint  colour = "2"
)

// paint returns text in a colour, if the output is a terminal and its user did
// not ask for none (https://no-color.org).
func (c *console) paint(text string, in colour) string {
	if in == plain || text == "" || !c.terminal || c.lookup("NO_COLOR") != "" || c.lookup("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(in) + "m" + text + "\x1b[0m"
}

type cell struct {
	text string
	in   colour
}

// textCell makes a cell without colour, of text that came from outside.
func textCell(s string) cell { return cell{text: printable(s)} }

// printTable prints rows below a line of titles, each column as wide as its
// widest field. Nothing is printed without rows. On a terminal that is too narrow the last
// column is folded, beside the others or, if there is no room, below them.
func (c *console) printTable(titles []string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	head := make([]cell, len(titles))
	for i, t := range titles {
		head[i] = cell{t, bold}
	}
	all := append([][]cell{head}, rows...)
	widths := make([]int, len(titles))
	for _, row := range all {
		for i, f := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(f.text))
		}
	}
	last, before := len(titles)-1, 0
	for _, w := range widths[:len(widths)-1] {
		before += w + 2
	}
	width, _ := c.size()
	for _, row := range all {
		switch folded := row[last]; {
		case width == 0 || before+widths[last] <= width:
			c.printf("%s\n", c.tableLine(row, widths))
		case width-before >= leastFold:
			lines := fold(folded.text, width-before)
			row[last].text = lines[0]
			c.printf("%s\n", c.tableLine(row, widths))
			c.printFolded(lines[1:], before, folded.in)
		default:
			c.printf("%s\n", c.tableLine(row[:last], widths))
			c.printFolded(fold(folded.text, width-belowFold), belowFold, folded.in)
		}
	}
}

const (
	// leastFold is how wide a folded column is at least, beside the others.
	leastFold = 24
	// belowFold is how far it is indented below them.
	belowFold = 4
)

// printText prints a line, folded on a terminal that is too narrow: the first line is indented
// by first, others by rest.
func (c *console) printText(first, rest int, text string, in colour) {
	lines := []string{text}
	if width, _ := c.size(); width > 0 {
		lines = fold(text, width-rest)
	}
	c.printf("%s%s\n", strings.Repeat(" ", first), c.paint(lines[0], in))
	c.printFolded(lines[1:], rest, in)
}

func (c *console) printFolded(lines []string, indent int, in colour) {
	for _, line := range lines {
		if line != "" {
			c.printf("%s%s\n", strings.Repeat(" ", indent), c.paint(line, in))
		}
	}
}

// fold breaks text into lines that are no wider than width, between words if there are any.
// There is at least one.
func fold(text string, width int) []string {
	width = max(width, 1)
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		end := &lines[len(lines)-1]
		switch length := utf8.RuneCountInString(*end); {
		case *end == "":
			*end = word
		case length+1+utf8.RuneCountInString(word) <= width:
			*end += " " + word
		default:
			lines = append(lines, word)
		}
		for {
			end = &lines[len(lines)-1]
			runes := []rune(*end)
			if len(runes) <= width {
				break
			}
			*end = string(runes[:width])
			lines = append(lines, string(runes[width:]))
		}
	}
	return lines
}

func (c *console) tableLine(row []cell, widths []int) string {
	var b strings.Builder
	for i, f := range row {
		b.WriteString(c.paint(f.text, f.in))
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(f.text)+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func newLogger(w io.Writer, level, format, command string) *slog.Logger {
	if level == "" && command == "run" {
		level = "info"
	}
	least := slog.LevelWarn
	if level != "" {
		_ = least.UnmarshalText([]byte(level)) // one of the flag's enumeration
	}
	opts := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

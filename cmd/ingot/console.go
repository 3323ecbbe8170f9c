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
	in       io.Reader
	out, err io.Writer
	env      []string
	terminal bool   // out is a terminal
	person   bool   // in is a terminal: there is somebody to ask
	format   string // text or json
	log      *slog.Logger
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// lookup returns the value of an environment variable.
func (c *console) lookup(name string) string {
	for _, entry := range slices.Backward(c.env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// json reports whether results are printed as JSON.
func (c *console) json() bool { return c.format == "json" }

// printJSON prints v as an indented JSON document.
func (c *console) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (c *console) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

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

// cell is one field of a table.
type cell struct {
	text string
	in   colour
}

// textCell makes a cell without colour, of text that came from outside.
func textCell(s string) cell { return cell{text: printable(s)} }

// printTable prints rows below a line of titles, each column as wide as its
// widest field. Nothing is printed without rows.
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
	for _, row := range all {
		c.printf("%s\n", c.tableLine(row, widths))
	}
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

// newLogger returns the logger of command, which logs to w.
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

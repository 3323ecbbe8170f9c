package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type manCommand struct {
	Dir string `arg:"" help:"The folder to write them into."`
}

// Run writes a page for the program, and one for each of its commands.
func (m manCommand) Run(_ *console, app *kong.Kong) error {
	errs := []error{os.MkdirAll(m.Dir, 0o755)}
	for _, node := range append([]*kong.Node{app.Model.Node}, app.Model.Leaves(true)...) {
		name := strings.ReplaceAll(node.FullPath(), " ", "-")
		errs = append(errs, os.WriteFile(filepath.Join(m.Dir, name+".1"), []byte(manPage(app.Model.Node, node, name)), 0o644))
	}
	return errors.Join(errs...)
}

// manPage returns the page of a command in the macros of man(7).
func manPage(app, node *kong.Node, name string) string {
	var b strings.Builder
	help, detail := node.Help, node.Detail
	if node == app {
		help, detail, _ = strings.Cut(node.Help, "\n")
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"Ingot\"\n", roff(strings.ToUpper(name)), roff(versionLine()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.TrimSuffix(help, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(node.FullPath()))
	for _, argument := range node.Positional {
		fmt.Fprintf(&b, "%s\n", roff(argument.Summary()))
	}
	b.WriteString("[\\fIflags\\fR]\n")
	if detail = strings.TrimSpace(detail); detail != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", paragraphs(detail))
	}
	if commands := node.Leaves(true); len(node.Children) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range commands {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(strings.ReplaceAll(c.FullPath(), " ", "-")), roff(c.Help))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	for _, argument := range node.Positional {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(argument.Name), roff(argument.Help))
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
		}
	}
	return b.String()
}

// paragraphs sets a text; what is indented stays as it is.
func paragraphs(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, "  ") {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(part))
		} else {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(part))
		}
	}
	return b.String()
}

// roff escapes what means something to roff (groff_char(7), "Escape sequences").
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

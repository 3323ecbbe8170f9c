package main

import (
	"strings"

	"ingot/model"
	"ingot/reconcile/preview"
	"ingot/reconcile/report"
)

var verdictColours = map[preview.Verdict]colour{
	preview.Nothing: green, preview.Changes: yellow, preview.Destructive: red, preview.Wrong: red,
}

// printPreview prints what a commit does, for a terminal.
func printPreview(c *console, p *preview.Preview) {
	c.printf("%s\n%s\n", c.paint(printable(p.Summary())+".", verdictColours[p.Verdict]),
		c.paint(printable(p.Step()), faint))
	for i := range p.Effects {
		printEffect(c, &p.Effects[i])
	}
	for i := range p.Held {
		printHold(c, &p.Held[i])
	}
	if len(p.Problems) > 0 {
		c.printf("\n%s\n", c.paint(preview.WrongTitle+":", bold))
	}
	for _, problem := range p.Problems {
		in := red
		if problem.Severity == model.SeverityWarning {
			in = yellow
		}
		c.printf("  %s\n", c.paint(printable(problem.String()), in))
	}
	for _, note := range p.Notes {
		c.printf("\n%s %s\n", c.paint("note:", faint), printable(note))
	}
}

func printEffect(c *console, e *preview.Effect) {
	mark := c.paint("~", yellow)
	if e.Destructive {
		mark = c.paint("!", red)
	}
	what, name, _ := strings.Cut(e.What(), " ")
	c.printf("\n%s %s %s %s", mark, what, c.paint(printable(name), bold), printable(e.Message))
	if e.Held {
		c.printf(" %s", c.paint("(held back by the guard)", yellow))
	}
	c.printf("\n")
	if e.Waits != "" {
		c.printf("    %s\n", printable(preview.WaitsText+e.Waits))
	}
	if e.Next != "" {
		c.printf("    %s\n", printable(e.Next))
	}
}

func printHold(c *console, h *preview.Held) {
	c.printf("\n%s %s:\n", c.paint("The guard will hold back", bold), printable(h.Limits()))
	for _, d := range h.Steps {
		c.printf("    %s\n", printable(report.EffectText(d)))
	}
	c.printf("  %s\n", printable(h.Next()))
}

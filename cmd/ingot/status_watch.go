package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"ingot/model/text"
	"ingot/reconcile/report"
)

// watch shows the state of the fleet until ctx is done: drawn anew on a terminal, a document
// for each change as JSON or YAML, and a line for each change elsewhere.
func (s statusCommand) watch(ctx context.Context, c *console) error {
	show := s.lines(c)
	switch {
	case c.format == "name":
		return errors.New("--watch prints text, wide, json or yaml: names do not change")
	case c.json():
		show = documents(c, json.Marshal)
	case c.format == "yaml":
		show = documents(c, yamlDocument)
	case c.terminal:
		show = s.screens(c)
	}
	var summary report.Summary
	look := func() error {
		now, err := s.look(ctx, c)
		if err == nil {
			summary = now
		}
		s.quiet = true
		return err
	}
	return s.watchFlags.watch(ctx, func(ctx context.Context) <-chan news { return s.follow(ctx, c) }, look,
		func(err error, at time.Time) { show(summary, err, at) })
}

// yamlDocument writes v as one of several YAML documents.
func yamlDocument(v any) ([]byte, error) {
	data, err := yaml.Marshal(v)
	return append([]byte("---\n"), bytes.TrimRight(data, "\n")...), err
}

// show shows a summary, and why there is no newer one, if there is none.
type show func(now report.Summary, err error, at time.Time)

// screens draws each summary over the one before.
func (s statusCommand) screens(c *console) show {
	return func(now report.Summary, err error, at time.Time) {
		c.redraw(func(on *console) {
			on.printf("%s\n", on.paint(fmt.Sprintf("%s, every %s", at.Format(time.TimeOnly), s.Interval), faint))
			if err != nil {
				on.printText(0, 2, printable("not so any more, perhaps: "+err.Error()), red)
			}
			printSummary(on, now, s.whole(), at)
		}, "a kind and a name show less")
	}
}

// redraw draws what print prints over what stands on the terminal. Advice says what to do
// where there is no room for all of it.
func (c *console) redraw(print func(on *console), advice string) {
	var drawn bytes.Buffer
	on := *c
	on.out = &drawn
	print(&on)
	lines := strings.Split(strings.TrimRight(drawn.String(), "\n"), "\n")
	if _, height := c.size(); len(lines) > height-1 {
		more := len(lines) - max(height-2, 1)
		lines = append(lines[:len(lines)-more], fmt.Sprintf("… %s more; %s", text.Plural(more, "line"), advice))
	}
	// from the top, over what stands there, and nothing below (ECMA-48: CUP, EL, ED)
	c.printf("\x1b[H%s\x1b[K\n\x1b[J", strings.Join(lines, "\x1b[K\n"))
}

// lines prints the first summary, and from then on a line for each change.
func (s statusCommand) lines(c *console) show {
	var before *report.Summary
	var said string
	return func(now report.Summary, err error, at time.Time) {
		if before == nil {
			printSummary(c, now, s.whole(), at)
			before = &now
		}
		if message := errorText(err); message != said {
			said = message
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(cmp.Or(message, "it answers again")))
		}
		for _, change := range append(changes(*before, now), transitionLines(*before, now)...) {
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(change))
		}
		before = &now
	}
}

// changes are the lines for what changed of the fleet as a whole.
func changes(before, now report.Summary) (lines []string) {
	if now.Revision != before.Revision {
		lines = append(lines, "revision "+string(now.Revision))
	}
	if len(now.Guard) != len(before.Guard) {
		lines = append(lines, text.Plural(len(now.Guard), "list")+" held by the guard")
	}
	if len(now.Problems) != len(before.Problems) {
		lines = append(lines, text.Plural(len(now.Problems), "problem"))
	}
	return lines
}

func transitionLines(before, now report.Summary) (lines []string) {
	for _, t := range transitions(before, now, 0) {
		lines = append(lines, fmt.Sprintf("%s %s %s", t.Kind, t.Name, t.change()))
	}
	return lines
}

// documents prints each summary that is another one, as a line of JSON or a document of YAML.
func documents(c *console, write func(any) ([]byte, error)) show {
	var before string
	return func(now report.Summary, _ error, _ time.Time) {
		line, err := write(now)
		if err == nil && string(line) != before {
			before = string(line)
			c.printf("%s\n", line)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

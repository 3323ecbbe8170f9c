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

// watch shows the state of the fleet until ctx is done: redrawn on a terminal, a document
// for each change as JSON or YAML, and a line for each change elsewhere.
func (s statusCommand) watch(ctx context.Context, c *console) error {
	show := s.lines(c)
	switch {
	case c.format == "name":
		return errors.New("--watch prints text, wide, json or yaml: names do not change")
	case c.json():
		show = changedDocuments(c, json.Marshal)
	case c.format == "yaml":
		show = changedDocuments(c, yamlDocument)
	case c.terminal:
		show = s.screens(c)
	}
	v := &statusView{statusCommand: s, c: c}
	if err := v.look(ctx, nil); err != nil {
		return err
	}
	if v.missing != nil {
		return v.missing
	}
	s.watchFlags.watch(ctx, v.view(ctx, func(err error, at time.Time) { show(v.docs, cmp.Or(err, v.missing), at) }), nil)
	return nil
}

// statusView has the newest documents.
type statusView struct {
	statusCommand
	c *console

	all     *report.Documents // as they were loaded; nil after an error
	updated bool              // all were loaded in parts: its fleet may be newer than other documents
	docs    *report.Documents // of all, those that were asked for
	missing error             // there are no such documents any longer
}

// look loads the documents at changed paths, or everything.
func (v *statusView) look(ctx context.Context, paths []string) (err error) {
	v.updated, v.polled = v.all != nil && paths != nil, true
	v.all, err = v.load(ctx, v.c, v.all, paths)
	v.quiet = true
	if err != nil {
		v.all = nil
		return err
	}
	only, missing := v.filter(v.all)
	if v.missing = missing; missing == nil {
		v.docs = only
	}
	return nil
}

func (v *statusView) view(ctx context.Context, show func(err error, at time.Time)) view {
	return view{
		func(ctx context.Context) <-chan change { return v.follow(ctx, v.c) },
		func(paths []string) error { return v.look(ctx, paths) },
		show,
	}
}

func yamlDocument(v any) ([]byte, error) {
	data, err := yaml.Marshal(v)
	return append([]byte("---\n"), bytes.TrimRight(data, "\n")...), err
}

// show shows documents, and why there are no newer ones.
type show func(now *report.Documents, err error, at time.Time)

func (s statusCommand) screens(c *console) show {
	return func(now *report.Documents, err error, at time.Time) {
		c.redraw(func(on *console) {
			on.printf("%s\n", on.paint(fmt.Sprintf("%s, every %s", at.Format(time.TimeOnly), s.Interval), faint))
			if err != nil {
				on.printText(0, 2, printable("may be outdated: "+err.Error()), red)
			}
			printStatus(on, now, s.whole(), at)
		}, "a kind and a name show less")
	}
}

// redraw draws the output of print over the screen. Advice follows the number of lines that do not
// fit.
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
	// from the top, over the previous lines, and nothing below (ECMA-48: CUP, EL, ED)
	c.printf("\x1b[H%s\x1b[K\n\x1b[J", strings.Join(lines, "\x1b[K\n"))
}

// lines prints the first status, and then a line for each change.
func (s statusCommand) lines(c *console) show {
	var before *report.Documents
	var said string
	return func(now *report.Documents, err error, at time.Time) {
		if before == nil {
			printStatus(c, now, s.whole(), at)
			before = now
		}
		if message := errorText(err); message != said {
			said = message
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(cmp.Or(message, "it answers again")))
		}
		for _, change := range append(changes(before.Fleet, now.Fleet), transitionLines(before, now)...) {
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(change))
		}
		before = now
	}
}

func changes(before, now *report.Fleet) (lines []string) {
	if now.Applied != before.Applied {
		lines = append(lines, "revision "+string(now.Applied))
	}
	if len(now.Holds) != len(before.Holds) {
		lines = append(lines, text.Plural(len(now.Holds), "list")+" waiting for approval")
	}
	if len(now.Problems) != len(before.Problems) {
		lines = append(lines, text.Plural(len(now.Problems), "problem"))
	}
	return lines
}

func transitionLines(before, now *report.Documents) (lines []string) {
	for _, t := range transitions(before, now, 0) {
		lines = append(lines, fmt.Sprintf("%s %s %s", t.Kind, t.Name, t.change()))
	}
	return lines
}

// changedDocuments prints changed documents as a line of JSON or a document of YAML.
func changedDocuments(c *console, write func(any) ([]byte, error)) show {
	var before string
	return func(now *report.Documents, _ error, _ time.Time) {
		line, err := write(documentsOf(now))
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

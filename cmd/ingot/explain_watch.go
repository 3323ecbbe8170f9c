package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"ingot/reconcile/report"
)

// watch explains the object until ctx is done: drawn anew on a terminal, a line for each change
// as JSON, and the whole explanation again with each change elsewhere.
func (e explainCommand) watch(ctx context.Context, c *console) error {
	show := explanations(c)
	switch {
	case c.json():
		show = explanationDocuments(c)
	case c.terminal:
		show = e.screens(c)
	}
	var x report.Explanation
	look := func() error {
		now, err := e.read(ctx, c)
		if err == nil {
			x = now
		}
		e.quiet = true
		return err
	}
	follow := func(ctx context.Context) <-chan news { return e.follow(ctx, c) }
	if e.Kind == "endpoint" { // nobody tells of what its network card asks
		follow = func(context.Context) <-chan news { return nil }
	}
	return e.watchFlags.watch(ctx, follow, look,
		func(err error, at time.Time) { show(x, err, at) })
}

// showExplanation shows an explanation, and why there is no newer one, if there is none.
type showExplanation func(now report.Explanation, err error, at time.Time)

// screens draws each explanation over the one before.
func (e explainCommand) screens(c *console) showExplanation {
	return func(now report.Explanation, err error, at time.Time) {
		c.redraw(func(on *console) {
			on.printf("%s\n", on.paint(at.Format(time.TimeOnly), faint))
			if err != nil {
				on.printText(0, 2, printable("not so any more, perhaps: "+err.Error()), red)
			}
			printExplanation(on, now, at)
		}, "a larger terminal shows them")
	}
}

// explanations prints each explanation that is another one.
func explanations(c *console) showExplanation {
	var before *report.Explanation
	var said string
	return func(now report.Explanation, err error, at time.Time) {
		if message := errorText(err); message != said {
			said = message
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(cmp.Or(message, "it answers again")))
		}
		if before != nil && reflect.DeepEqual(*before, now) {
			return
		}
		if before != nil {
			c.printf("\n%s\n", at.Format(time.TimeOnly))
		}
		printExplanation(c, now, at)
		before = &now
	}
}

// explanationDocuments prints each explanation that is another one as a line of JSON.
func explanationDocuments(c *console) showExplanation {
	var before []byte
	return func(now report.Explanation, _ error, _ time.Time) {
		line, err := json.Marshal(now)
		if err == nil && !bytes.Equal(line, before) {
			before = line
			fmt.Fprintf(c.out, "%s\n", line)
		}
	}
}

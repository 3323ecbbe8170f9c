package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// watch explains the object until ctx is done: redrawn on a terminal, a line for each change
// as JSON, and the whole explanation again with each change elsewhere.
func (e explainCommand) watch(ctx context.Context, c *console) error {
	show := explanations(c)
	switch {
	case c.json():
		show = explanationDocuments(c)
	case c.terminal:
		show = e.screens(c)
	}
	x, err := e.read(ctx, c)
	if err != nil {
		return err
	}
	e.quiet, e.polled = true, true
	follow := func(ctx context.Context) <-chan change { return e.follow(ctx, c) }
	if e.Kind == "endpoint" { // events do not report its network card
		follow = func(context.Context) <-chan change { return nil }
	}
	look := func(paths []string) error {
		if paths != nil && err == nil && !slices.ContainsFunc(paths, x.has) {
			return nil
		}
		var now explanation
		if now, err = e.read(ctx, c); err == nil {
			x = now
		}
		return err
	}
	e.watchFlags.watch(ctx, view{follow, look, func(err error, at time.Time) { show(x, err, at) }}, nil)
	return nil
}

// showExplanation shows an explanation, and why there is no newer one, if there is none.
type showExplanation func(now explanation, err error, at time.Time)

func (e explainCommand) screens(c *console) showExplanation {
	return func(now explanation, err error, at time.Time) {
		c.redraw(func(on *console) {
			on.printf("%s\n", on.paint(at.Format(time.TimeOnly), faint))
			if err != nil {
				on.printText(0, 2, printable("may be outdated: "+err.Error()), red)
			}
			printExplanation(on, now, at)
		}, "a larger terminal shows them")
	}
}

// explanations prints each explanation that differs from the one before.
func explanations(c *console) showExplanation {
	var before *explanation
	var said string
	return func(now explanation, err error, at time.Time) {
		if message := errorText(err); message != said {
			said = message
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(cmp.Or(message, "it answers again")))
		}
		if before != nil && reflect.DeepEqual(before.Items, now.Items) && reflect.DeepEqual(before.Card, now.Card) {
			return
		}
		if before != nil {
			c.printf("\n%s\n", at.Format(time.TimeOnly))
		}
		printExplanation(c, now, at)
		before = &now
	}
}

// explanationDocuments prints each explanation that differs from the one before as a line of JSON.
func explanationDocuments(c *console) showExplanation {
	var before []byte
	return func(now explanation, _ error, _ time.Time) {
		line, err := json.Marshal(now)
		if err == nil && !bytes.Equal(line, before) {
			before = line
			fmt.Fprintf(c.out, "%s\n", line)
		}
	}
}

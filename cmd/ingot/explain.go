package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/report"
)

type explainCommand struct {
	fleetSource `embed:""`
	watchFlags  `embed:""`

	Kind string `arg:"" values:"server claim boot-configuration bmc endpoint" help:"Its kind: server, claim, boot-configuration, bmc or endpoint."`
	Name string `arg:"" help:"Its name; a claim's is namespace/name or name, and an endpoint may be named by its MAC address."`
}

// Help implements kong.HelpProvider.
func (explainCommand) Help() string {
	return `Prints the state of one object and how long it has been in it, what it waits for and who has to act, which boot stages its server has passed, and the same for the objects that it depends on. For an endpoint, or any network card named by its MAC address, it also prints the card's DHCP, TFTP and HTTP requests and their answers, which only a running daemon knows. Without a daemon on this machine it reads the status branch of the clone in the working directory.

Examples:

  ingot explain server rack1-bmc-03-system-0
  ingot explain claim default/web-1
  ingot explain --watch server rack1-bmc-03-system-0
  ingot explain endpoint 02:00:00:00:00:0a
  ingot explain --git https://git.example.com/infra/metal.git endpoint oob-a0369f0102ff
  ingot explain -o json server rack1-bmc-03-system-0 | jq .boot`
}

// Validate implements kong's validation of flags.
func (e *explainCommand) Validate() error {
	if e.Interval < minInterval {
		return fmt.Errorf("--interval %s is not allowed: must be at least %s", e.Interval, minInterval)
	}
	kinds := report.ExplainKinds()
	if one := singular(e.Kind); slices.Contains(kinds, one) {
		e.Kind = one
	} else {
		return fmt.Errorf("%q is no kind that can be explained: it is %s", e.Kind, strings.Join(kinds, ", "))
	}
	return nil
}

// Run explains one object.
func (e explainCommand) Run(ctx context.Context, c *console) error {
	if e.Watch {
		return e.watch(ctx, c)
	}
	x, err := e.read(ctx, c)
	if err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(x)
	}
	printExplanation(c, x, time.Now())
	return nil
}

func (e explainCommand) read(ctx context.Context, c *console) (x report.Explanation, err error) {
	return x, e.fleetSource.read(ctx, c, func(daemon *adminClient) (err error) {
		x, err = daemon.explain(ctx, e.Kind, e.Name)
		return err
	}, func(files map[string][]byte) (err error) {
		if e.Kind == "endpoint" && !e.quiet {
			fmt.Fprintln(c.err, "ingot: the network card log is only available from a running daemon: name it with --address")
		}
		x, err = report.ExplainFiles(files, e.Kind, e.Name)
		return err
	})
}

// printExplanation prints an object, and below it the objects that it depends on.
func printExplanation(c *console, x report.Explanation, now time.Time) {
	c.printf("%s %s", c.paint(x.Kind, bold), printable(x.Name))
	if x.State != "" {
		c.printf(": %s", c.paint(printable(x.State), stateColours[x.State]))
	}
	if !x.Since.IsZero() {
		c.printf(" for %s", age(x.Since, now))
	}
	c.printf("\n")
	if x.Why != "" {
		c.printf("  %s %s\n", c.paint("waits:", yellow), printable(x.Why))
	}
	if x.Actor != "" {
		c.printf("  to act: %s\n", printable(x.Actor))
	}
	if x.Next != "" {
		c.printf("  next: %s\n", printable(x.Next))
	}
	for _, f := range x.Facts {
		c.printf("  %s: %s\n", printable(f.Name), printable(f.Value))
	}
	printBoot(c, x.Boot, now)
	if x.BootHint != "" {
		c.printf("    if it comes no further: %s\n", printable(x.BootHint))
	}
	if len(x.Uses) > 0 {
		c.printf("  what its boot ticket was asked for:\n")
	}
	for _, use := range x.Uses {
		c.printf("    %s\n", printable(use))
	}
	printConditions(c, x.Conditions, now)
	printCard(c, x.Card, now)
	for _, on := range x.Related {
		c.printf("\n")
		printExplanation(c, on, now)
	}
}

// printBoot prints the stages of a boot, with the time between them.
func printBoot(c *console, steps []model.BootStep, now time.Time) {
	if len(steps) == 0 {
		return
	}
	c.printf("  newest boot, as far as it was seen:\n")
	for i, s := range steps {
		after := age(s.At, now) + " ago"
		if i > 0 {
			after = "+" + s.At.Sub(steps[i-1].At).Round(100*time.Millisecond).String()
		}
		c.printf("    %s  %-12s %s\n", s.At.UTC().Format("15:04:05Z"), printable(string(s.Stage)), c.paint(after, faint))
	}
}

func printConditions(c *console, all []metav1.Condition, now time.Time) {
	for _, k := range all {
		holds := "yes"
		if k.Status != metav1.ConditionTrue {
			holds = "no"
		}
		if !k.LastTransitionTime.IsZero() {
			holds += " for " + age(k.LastTransitionTime.Time, now)
		}
		line := fmt.Sprintf("  %s: %s, %s", k.Type, holds, k.Reason)
		if k.Message != "" {
			line += ": " + k.Message
		}
		c.printf("%s\n", printable(line))
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
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
  ingot explain -o json server rack1-bmc-03-system-0 | jq '.items[0].status.bootTimeline'`
}

// Validate implements kong's validation of flags.
func (e *explainCommand) Validate() error {
	if e.Interval < minInterval {
		return fmt.Errorf("--interval %s is not allowed: must be at least %s", e.Interval, minInterval)
	}
	if e.Kind = nounOf(e.Kind); e.Kind != "" && !slices.Contains(explainKinds, e.Kind) {
		return fmt.Errorf("unknown kind %q: use one of %s", e.Kind, strings.Join(explainKinds, ", "))
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

var explainKinds = []string{"bmc", "boot-configuration", "claim", "endpoint", "server"}

// explanation is an object with the objects that it depends on.
type explanation struct {
	Items []*report.Document `json:"items"`
	// Card is the network card of an Endpoint, or the first one of a server. Only a running daemon knows it.
	Card *report.Card `json:"card,omitempty"`

	fleet *report.Fleet
	paths []string // of the documents that were looked for
	// removed is the claim of the first item, which Git lacks: the explained object; empty for none.
	removed string
}

func (x explanation) has(path string) bool { return slices.Contains(x.paths, path) }

func (e explainCommand) read(ctx context.Context, c *console) (x explanation, err error) {
	err = e.fleetSource.read(ctx, c, func(daemon *adminClient) error {
		docs, err := daemon.documents(ctx)
		if err != nil {
			return err
		}
		x, err = e.gather(docs.Fleet, func(f report.Folder, name string) (*report.Document, error) { return daemon.document(ctx, f, name) },
			func() (*report.Documents, error) { return daemon.documents(ctx, report.Servers) })
		if mac := e.mac(x); mac != "" && (err == nil || errors.Is(err, report.ErrUnknownObject)) {
			card := new(report.Card)
			if failed := daemon.get(ctx, "/api/v1/cards/"+mac, card); failed == nil {
				x.Card, err = card, nil
			}
		}
		return err
	}, func(docs *report.Documents) (err error) {
		if e.Kind == "endpoint" && !e.quiet {
			fmt.Fprintln(c.err, "ingot: the network card log is only available from a running daemon: name it with --address")
		}
		x, err = e.gather(docs.Fleet, docs.Find, func() (*report.Documents, error) { return docs, nil })
		return err
	})
	return x, err
}

// gather returns the object and the objects that it depends on. A claim that Git lacks, and that a
// server has, is found by that server.
func (e explainCommand) gather(fleet *report.Fleet, find func(report.Folder, string) (*report.Document, error), all func() (*report.Documents, error)) (explanation, error) {
	x := explanation{fleet: fleet, Items: []*report.Document{}}
	get := func(f report.Folder, name string) (*report.Document, error) {
		d, err := find(f, name)
		if err == nil {
			name = d.Name()
		}
		x.paths = append(x.paths, f.Path(name))
		return d, err
	}
	d, err := get(report.FolderOf(e.Kind), e.Name)
	if e.Kind == "claim" && errors.Is(err, report.ErrUnknownObject) {
		if docs, failed := all(); failed == nil {
			if server := docs.RemovedClaim(e.Name); server != nil {
				d, err, x.removed = server, nil, string(server.Overview().Summary.Claim)
				x.paths = append(x.paths, report.Claims.Path(x.removed), server.Path())
			}
		}
	}
	if err != nil {
		return x, err
	}
	for d != nil && err == nil {
		x.Items = append(x.Items, d)
		f, name := d.DependsOn()
		if d = nil; name != "" {
			d, err = get(f, name)
		}
	}
	if errors.Is(err, report.ErrUnknownObject) { // such as a BMC that Git lacks
		err = nil
	}
	return x, err
}

// mac is the MAC address of the network card to show.
func (e explainCommand) mac(x explanation) string {
	name := e.Name
	if len(x.Items) > 0 {
		name = x.Items[0].MAC()
	}
	if mac, ok := model.ParseMAC(name); ok && (e.Kind == "endpoint" || e.Kind == "server") {
		return mac.String()
	}
	return ""
}

// printExplanation prints an object, and below it the objects that it depends on.
func printExplanation(c *console, x explanation, now time.Time) {
	if x.removed != "" {
		c.printf("%s %s: not in Git, and its server still has it\n\n", c.paint("claim", bold), printable(x.removed))
	}
	docs := report.NewDocuments(x.fleet, x.Items)
	for i, d := range x.Items {
		if i > 0 {
			c.printf("\n")
		}
		printObject(c, docs, d, now)
		if i == 0 && d.Folder() == report.Servers && x.Card != nil {
			printUses(c, x.Card.TicketUses)
		} else if i == 0 {
			printCard(c, x.Card, now)
		}
	}
	if len(x.Items) == 0 && x.Card != nil {
		c.printf("%s %s\n", c.paint("endpoint", bold), printable(x.Card.MAC))
		printCard(c, x.Card, now)
	}
}

func printUses(c *console, uses []string) {
	if len(uses) > 0 {
		c.printf("  uses of its boot ticket:\n")
	}
	for _, use := range uses {
		c.printf("    %s\n", printable(use))
	}
}

func printObject(c *console, docs *report.Documents, d *report.Document, now time.Time) {
	o := d.Overview()
	c.printf("%s %s", c.paint(d.Folder().Noun(), bold), printable(d.Name()))
	if o.Summary.State != "" {
		c.printf(": %s", c.paint(printable(o.Summary.State), stateColours[o.Summary.State]))
	}
	if !o.Summary.Since.IsZero() {
		c.printf(" for %s", age(o.Summary.Since, now))
	}
	c.printf("\n")
	for _, w := range o.Waiting {
		text := "waiting: " + w.Reason
		if w.Message != "" {
			text = "waiting (" + w.Reason + "): " + w.Message
		}
		c.printf("  %s\n", c.paint(printable(text), yellow))
		for _, line := range [][2]string{
			{"to act", string(w.Actor)}, {"next", cmp.Or(w.Next, "no action needed")}, {"approve with", w.Approve}, {"refuse with", w.Revert},
		} {
			if line[1] != "" {
				c.printf("  %s: %s\n", line[0], printable(line[1]))
			}
		}
	}
	for _, f := range docs.Facts(d) {
		c.printf("  %s: %s\n", f.Name, printable(f.Value))
	}
	if st, ok := d.Status.(report.ServerStatus); ok {
		printBoot(c, st.BootTimeline, now)
	}
	if hint := d.BootHint(); hint != "" {
		c.printf("    if it does not continue: %s\n", printable(hint))
	}
	printConditions(c, d.Conditions(), now)
}

// printBoot prints the stages of a boot, with the time between them.
func printBoot(c *console, steps []model.BootStep, now time.Time) {
	if len(steps) == 0 {
		return
	}
	c.printf("  newest boot:\n")
	for i, s := range steps {
		after := age(s.At, now) + " ago"
		if i > 0 {
			after = "+" + s.At.Sub(steps[i-1].At).Round(100*time.Millisecond).String()
		}
		c.printf("    %s  %-13s %s\n", s.At.UTC().Format("15:04:05Z"), printable(string(s.Stage)), c.paint(after, faint))
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

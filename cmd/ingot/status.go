package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

type statusCommand struct {
	fleetSource `embed:""`

	watchFlags `embed:""`
	Selector   string `short:"l" placeholder:"SELECTOR" help:"Show only objects with these labels: rack=7,zone in (a,b),!gpu. A server also has the labels of its BMC."`
	ExitCode   bool   `xor:"end" help:"Exit with 5 if somebody has to act, and with 6 if something is only in progress."`

	Wait     bool          `xor:"end" help:"Wait until everything is as Git says, then exit with 0. Progress goes to standard error. Also waits for a daemon that does not answer yet and for an object that does not exist yet."`
	Timeout  time.Duration `placeholder:"TIME" help:"With --wait: give up after this time, with the code of --exit-code, or with 1 if the object does not exist or nobody answers. Default: never."`
	Revision string        `placeholder:"REVISION" help:"With --wait: also wait until the daemon acts on this commit, or on one that follows it: a hash, or what the clone in the working directory calls it, such as HEAD."`
	Kind     string        `arg:"" optional:"" values:"server claim bmc" help:"Show only this kind: server, claim or bmc."`
	Name     string        `arg:"" optional:"" help:"Show only the object with this name; for a claim, namespace/name or name."`
}

// formats are those that results are printed in.
func (statusCommand) formats() []string {
	return []string{"text", "wide", "json", "yaml", "name"}
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Asks a running daemon, or reads the status branch, which works from anywhere and also while the daemon is down. Without a daemon on this machine it reads the status branch of the clone in the working directory.

Exits 0 if the state could be shown, whatever it is. With --exit-code: 0 if everything is as Git says; 5 if somebody has to act, because an object says so or is in Error, a manifest is wrong, something is held back or absent without a commit, or the repository cannot be read; 6 if the rest is still in progress. With a kind or labels only those objects count.

-o wide has more columns; name prints one kind/name per line, for other commands; json and yaml have everything.

Examples:

  ingot status
  ingot status --watch
  ingot status claim default/web-1
  ingot status --wait claim web-1
  git push && ingot status --wait --revision HEAD
  ingot status --wait --timeout 30m && ./deploy.sh
  ingot status --address https://ingot.example.com:8080 --username anna --password-file ~/.ingot-password
  ingot status -l rack=7 -o wide
  ingot status server -l 'zone in (a,b),!gpu' -o name
  ingot status --git https://git.example.com/infra/metal.git server
  ingot status -o json | jq '.servers[] | select(.state == "Error")'`
}

// Validate implements kong's validation of flags.
func (s *statusCommand) Validate() error {
	if s.Interval < minInterval {
		return fmt.Errorf("--interval %s is not allowed: must be at least %s", s.Interval, minInterval)
	}
	if s.Timeout != 0 && (!s.Wait || s.Timeout < 0) {
		return errors.New("--timeout: a positive time, with --wait")
	}
	if s.Revision != "" && !s.Wait {
		return errors.New("--revision is for --wait: what is shown otherwise is the state of the revision that the daemon acts on")
	}
	if _, err := model.ParseLabelSelector(s.Selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	switch one := singular(s.Kind); one {
	case "", "server", "claim", "bmc":
		s.Kind = one
		return nil
	}
	return fmt.Errorf("%q is no kind that has a status: it is server, claim or bmc", s.Kind)
}

// Run prints the state of the fleet.
func (s statusCommand) Run(ctx context.Context, c *console) error {
	switch {
	case s.Watch:
		return s.watch(ctx, c)
	case s.Wait:
		return s.wait(ctx, c)
	}
	summary, err := s.look(ctx, c)
	if err != nil {
		return err
	}
	if err = s.print(c, summary, time.Now()); err == nil && s.ExitCode {
		err = verdict(summary, s.whole())
	}
	return err
}

// whole reports whether the whole fleet is asked for.
func (s statusCommand) whole() bool { return s.Kind == "" && s.Selector == "" }

// look returns the state of what was asked for.
func (s statusCommand) look(ctx context.Context, c *console) (report.Summary, error) {
	summary, err := s.read(ctx, c)
	if err != nil {
		return report.Summary{}, err
	}
	return s.filter(summary)
}

func (s statusCommand) read(ctx context.Context, c *console) (summary report.Summary, err error) {
	return summary, s.fleetSource.read(ctx, c, func(daemon *adminClient) (err error) {
		summary, err = daemon.summary(ctx)
		return err
	}, func(files map[string][]byte) (err error) {
		summary, err = report.ReadSummary(files)
		return err
	})
}

// filter keeps only what was asked for. It fails if there is no such object.
func (s statusCommand) filter(all report.Summary) (report.Summary, error) {
	if s.whole() {
		return all, nil
	}
	only := report.Summary{
		Revision: all.Revision, SignedBy: all.SignedBy, Source: all.Source, CommitStatus: all.CommitStatus, Guard: all.Guard,
		Servers: []report.ServerSummary{}, Claims: []report.ClaimSummary{}, BMCs: []report.BMCSummary{}, Problems: []model.Problem{},
	}
	labels, err := model.ParseLabelSelector(s.Selector)
	if err != nil {
		return only, err
	}
	wanted := func(kind, name string, has map[string]string) bool {
		return (s.Kind == "" || s.Kind == kind) && s.names(name) && labels.Matches(has)
	}
	only.Servers = keep(all.Servers, func(v report.ServerSummary) bool { return wanted("server", string(v.Name), v.Labels) })
	only.Claims = keep(all.Claims, func(v report.ClaimSummary) bool { return wanted("claim", string(v.Name), v.Labels) })
	only.BMCs = keep(all.BMCs, func(v report.BMCSummary) bool { return wanted("bmc", string(v.Name), v.Labels) })
	if s.Name != "" && len(only.Servers)+len(only.Claims)+len(only.BMCs) == 0 {
		return only, fmt.Errorf("there is no %s %s%s", s.Kind, s.Name, s.selected())
	}
	return only, nil
}

// selected says by which labels objects are selected.
func (s statusCommand) selected() string {
	if s.Selector == "" {
		return ""
	}
	return " with labels " + s.Selector
}

// names reports whether the object called name is asked for.
func (s statusCommand) names(name string) bool {
	_, short, namespaced := strings.Cut(name, "/")
	return s.Name == "" || s.Name == name || namespaced && s.Name == short
}

func keep[E any](all []E, wanted func(E) bool) []E {
	kept := []E{}
	for _, e := range all {
		if wanted(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

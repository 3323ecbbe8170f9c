package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

type statusCommand struct {
	fleetSource `embed:""`

	Watch    bool          `short:"w" xor:"end" help:"Go on showing it until ctrl-C: drawn anew on a terminal, else a line for each change."`
	Interval time.Duration `default:"2s" placeholder:"TIME" help:"With --watch: how often it is looked at. Default: ${default}."`
	ExitCode bool          `xor:"end" help:"Exit with 5 if somebody has to act, and 6 if something is merely under way."`
	Kind     string        `arg:"" optional:"" help:"Show only this kind: server, claim or bmc."`
	Name     string        `arg:"" optional:"" help:"Show only the object of this name; a claim's is namespace/name or name."`
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Asks a running daemon, or reads what it wrote to the status branch, which works from anywhere and also when the daemon is down. Without a daemon on this machine it reads the status branch of the clone that the working directory is in.

Exits 0 once it was shown, whatever it is. With --exit-code: 0 when all is as Git says; 5 when somebody has to act, because an object says so or is in Error, a manifest is wrong, something is held back or absent without a commit, or the repository cannot be read; 6 when what is not as Git says is under way. With a kind only such objects count.

Examples:

  ingot status
  ingot status --watch
  ingot status claim default/web-1
  until ingot status --exit-code claim default/web-1; do sleep 10; done
  ingot status --address https://ingot.example.com:8080 --username anna --password-file ~/.ingot-password
  ingot status --git https://git.example.com/infra/metal.git server
  ingot status -o json | jq '.servers[] | select(.state == "Error")'`
}

// Validate implements kong's validation of flags.
func (s *statusCommand) Validate() error {
	if s.Interval < minInterval {
		return fmt.Errorf("--interval %s is not allowed: must be at least %s", s.Interval, minInterval)
	}
	switch s.Kind {
	case "", "server", "claim", "bmc":
		return nil
	}
	return fmt.Errorf("%q is no kind that has a status: it is server, claim or bmc", s.Kind)
}

// minInterval is the shortest that --watch may wait.
const minInterval = 100 * time.Millisecond

// Run prints the state of the fleet.
func (s statusCommand) Run(ctx context.Context, c *console) error {
	if s.Watch {
		return s.watch(ctx, c)
	}
	summary, err := s.look(ctx, c)
	if err != nil {
		return err
	}
	if c.json() {
		err = c.printJSON(summary)
	} else {
		printSummary(c, summary, s.Kind == "", time.Now())
	}
	if err == nil && s.ExitCode {
		err = verdict(summary, s.Kind == "")
	}
	return err
}

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
	if s.Kind == "" {
		return all, nil
	}
	only := report.Summary{
		Revision: all.Revision, SignedBy: all.SignedBy, Source: all.Source, CommitStatus: all.CommitStatus, Guard: all.Guard,
		Servers: []report.ServerSummary{}, Claims: []report.ClaimSummary{}, BMCs: []report.BMCSummary{}, Problems: []model.Problem{},
	}
	found := 0
	switch s.Kind {
	case "server":
		only.Servers = keep(all.Servers, func(v report.ServerSummary) bool { return s.names(string(v.Name)) })
		found = len(only.Servers)
	case "claim":
		only.Claims = keep(all.Claims, func(v report.ClaimSummary) bool { return s.names(string(v.Name)) })
		found = len(only.Claims)
	case "bmc":
		only.BMCs = keep(all.BMCs, func(v report.BMCSummary) bool { return s.names(string(v.Name)) })
		found = len(only.BMCs)
	}
	if s.Name != "" && found == 0 {
		return only, fmt.Errorf("there is no %s %s", s.Kind, s.Name)
	}
	return only, nil
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

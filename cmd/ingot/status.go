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
	Address string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The admin listener of the daemon. Default: ${default}."`
	Git     string `xor:"source" placeholder:"URL" help:"Read the status branch of this repository instead; a URL or a path."`
	Branch  string `default:"status" placeholder:"NAME" help:"The status branch. Default: ${default}."`
	Kind    string `arg:"" optional:"" help:"Show only this kind: server, claim or bmc."`
	Name    string `arg:"" optional:"" help:"Show only the object of this name; a claim's is namespace/name or name."`

	Auth gitAuthFlags `embed:"" prefix:"git-"`
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Asks a running daemon, or reads what it wrote to the status branch, which works from anywhere and also when the daemon is down.

Examples:

  ingot status
  ingot status claim default/web-1
  ingot status --git https://git.example.com/infra/metal.git server
  ingot status -o json | jq '.servers[] | select(.state == "Error")'`
}

// Validate implements kong's validation of flags.
func (s *statusCommand) Validate() error {
	switch s.Kind {
	case "", "server", "claim", "bmc":
		return nil
	}
	return fmt.Errorf("%q is no kind that has a status: it is server, claim or bmc", s.Kind)
}

// Run prints the state of the fleet.
func (s statusCommand) Run(ctx context.Context, c *console) error {
	summary, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	if summary, err = s.filter(summary); err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(summary)
	}
	printSummary(c, summary, s.Kind == "", time.Now())
	return nil
}

func (s statusCommand) read(ctx context.Context, c *console) (report.Summary, error) {
	if s.Git != "" {
		return s.readBranch(ctx, c)
	}
	client, err := newAdminClient(s.Address)
	if err != nil {
		return report.Summary{}, err
	}
	return client.summary(ctx)
}

func (s statusCommand) readBranch(ctx context.Context, c *console) (report.Summary, error) {
	files, err := readStatusBranch(ctx, c, s.Git, s.Branch, s.Auth)
	if err != nil {
		return report.Summary{}, err
	}
	return report.ReadSummary(files)
}

// filter keeps only what was asked for. It fails if there is no such object.
func (s statusCommand) filter(all report.Summary) (report.Summary, error) {
	if s.Kind == "" {
		return all, nil
	}
	only := report.Summary{
		Revision: all.Revision, SignedBy: all.SignedBy, Source: all.Source, Guard: all.Guard,
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

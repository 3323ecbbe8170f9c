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
	ExitCode   bool   `xor:"end" help:"Exit with 5 if action is needed, and with 6 if something is only in progress."`

	Wait     bool          `xor:"end" help:"Wait until everything is as Git says, then exit with 0. Progress goes to standard error. Also waits for a daemon that does not answer yet and for an object that does not exist yet."`
	Timeout  time.Duration `placeholder:"TIME" help:"With --wait: give up after this time, with the code of --exit-code, or with 1 if the object does not exist or no daemon answers. Default: never."`
	Revision string        `placeholder:"REVISION" help:"With --wait: also wait until the daemon acts on this commit, or on one that follows it: a hash, or what the clone in the working directory calls it, such as HEAD. Default: the watched branch as the clone in the working directory pushed or fetched it last."`
	Kind     string        `arg:"" optional:"" values:"server claim bmc" help:"Show only this kind: server, claim or bmc."`
	Name     string        `arg:"" optional:"" help:"Show only the object with this name; for a claim, namespace/name or name."`
}

func (statusCommand) formats() []string {
	return []string{"text", "wide", "json", "yaml", "name"}
}

// Help implements kong.HelpProvider.
func (statusCommand) Help() string {
	return `Asks a running daemon, or reads the status branch, which works from anywhere and also while the daemon is down. Without a daemon on this machine it reads the status branch of the clone in the working directory, which --watch and --wait fetch.

Exits 0 if the state could be shown, whatever it is; 1 if it could not, or nothing has the labels of -l; 2 for wrong usage. With --exit-code: 0 if everything is as Git says; 5 if action is needed, because an object says so or is in Error, a manifest is wrong, something is held back or absent without a commit, or the repository cannot be read; 6 if the rest is still in progress. With a kind or labels only those objects count.

-o wide has more columns, with the addresses of a claim's server; name prints one kind/name per line, for other commands; json and yaml print the documents of the status branch: {"fleet": …, "items": […]}.

Examples:

  ingot status
  ingot status --watch
  ingot status claim default/web-1
  ingot status --wait claim web-1
  git push && ingot status --wait
  ingot status --wait --timeout 30m && ./deploy.sh
  ingot status --address https://ingot.example.com:8080 --username anna --password-file ~/.ingot-password
  ingot status -l rack=7 -o wide
  ingot status server -l 'zone in (a,b),!gpu' -o name
  ingot status --git https://git.example.com/infra/metal.git server
  ingot status -o json | jq '.items[] | select(.kind == "Server" and .status.state == "Error") | .metadata.name'`
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
	switch one := nounOf(s.Kind); one {
	case "", "server", "claim", "bmc":
		s.Kind = one
		return nil
	}
	return fmt.Errorf("%q has no status: use server, claim or bmc", s.Kind)
}

// Run prints the state of the fleet.
func (s statusCommand) Run(ctx context.Context, c *console) error {
	switch {
	case s.Watch:
		return s.watch(ctx, c)
	case s.Wait:
		return s.wait(ctx, c)
	}
	docs, err := s.look(ctx, c)
	if err != nil {
		return err
	}
	if err = s.print(c, docs, time.Now()); err == nil && s.ExitCode {
		err = verdict(docs, s.whole())
	}
	return err
}

func (s statusCommand) whole() bool { return s.Kind == "" && s.Selector == "" }

func (s statusCommand) folders() []report.Folder {
	switch s.Kind {
	case "claim":
		return []report.Folder{report.Claims, report.BootConfigurations}
	case "":
		return []report.Folder{report.Servers, report.Claims, report.BootConfigurations, report.BMCs}
	}
	return []report.Folder{report.FolderOf(s.Kind)}
}

func (s statusCommand) look(ctx context.Context, c *console) (*report.Documents, error) {
	docs, err := s.load(ctx, c, nil, nil)
	if err != nil {
		return nil, err
	}
	return s.filter(docs)
}

// load reads the documents: all of them, or, if there are some and their changed paths are known, the
// changed ones.
func (s statusCommand) load(ctx context.Context, c *console, before *report.Documents, paths []string) (docs *report.Documents, err error) {
	err = s.read(ctx, c, func(daemon *adminClient) (err error) {
		if before == nil || paths == nil {
			docs, err = daemon.documents(ctx, s.folders()...)
		} else {
			docs, err = daemon.update(ctx, before, paths, s.folders()...)
		}
		return err
	}, func(all *report.Documents) error {
		docs = all
		return nil
	})
	return docs, err
}

// filter keeps the documents that were asked for. It fails if there is none of the name.
func (s statusCommand) filter(all *report.Documents) (*report.Documents, error) {
	labels, err := model.ParseLabelSelector(s.Selector)
	if err != nil {
		return nil, err
	}
	var only []*report.Document
	for _, f := range s.folders() {
		for _, d := range all.List(f) {
			if (f != report.BootConfigurations || d.InGit()) && s.names(d.Name()) && labels.Matches(d.Metadata.Labels) {
				only = append(only, d)
			}
		}
	}
	if s.Name != "" && len(only) == 0 {
		return nil, fmt.Errorf("there is no %s %s%s", s.Kind, s.Name, s.selected())
	}
	return report.NewDocuments(all.Fleet, only), nil
}

func (s statusCommand) selected() string {
	if s.Selector == "" {
		return ""
	}
	return " with labels " + s.Selector
}

func (s statusCommand) names(name string) bool {
	_, short, namespaced := strings.Cut(name, "/")
	return s.Name == "" || s.Name == name || namespaced && s.Name == short
}

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

// defaultAddress is the admin listener of a daemon on this machine.
const defaultAddress = "http://127.0.0.1:8080"

// fleetSource says where the state of a fleet is read.
type fleetSource struct {
	daemonSource `embed:""`

	Git    string `xor:"source" placeholder:"URL" help:"Read the status branch of this repository instead; a URL or a path."`
	Branch string `default:"status" placeholder:"NAME" help:"The status branch. Default: ${default}."`

	Auth gitAuthFlags `embed:"" prefix:"git-"`

	quiet  bool // the missing daemon was reported before
	polled bool // each read fetches the status branch of the clone
}

// read asks the daemon, or reads the status branch: of the repository that --git names, or,
// where no daemon was named and none answers, of the clone that the working directory is in.
func (f fleetSource) read(ctx context.Context, c *console, ask func(*adminClient) error, parse func(*report.Documents) error) error {
	if f.Git != "" {
		if f.Daemon != (daemonFlags{}) {
			return usageError("--ca-file, --username and --password-file are for a daemon; with --git use --git-ca-file, --git-username-file and --git-password-file")
		}
		files, err := readStatusBranch(ctx, c, f.Git, f.Branch, f.Auth)
		if err != nil {
			return err
		}
		return f.parse(files, parse)
	}
	client, err := f.client(c)
	if err != nil {
		return err
	}
	if err = ask(client); !errors.Is(err, errNoDaemon) {
		return err
	}
	err = fmt.Errorf("%w, or read the status branch with --git", err)
	if f.named(c) != "" {
		return err
	}
	g, cloned := openClone(ctx, c, ".", "origin")
	if cloned != nil {
		return err
	}
	var failed error
	advice := "git fetch brings what is newer"
	if f.polled {
		failed, advice = g.fetch(ctx, f.Branch), "it is fetched each time"
	}
	b, cloned := g.branch(ctx, f.Branch)
	if cloned != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(c.err, "ingot: %s at %s: this is %s of the clone here, written %s ago; %s\n",
			errNoDaemon, f.address(c), strings.TrimPrefix(strings.TrimPrefix(b.ref, "refs/"), "remotes/"), age(b.written, time.Now()), advice)
	}
	if failed != nil {
		return failed
	}
	files, err := g.files(ctx, b)
	if err != nil {
		return err
	}
	return f.parse(files, parse)
}

// parse reads the files of the branch, if it is a status branch.
func (f fleetSource) parse(files map[string][]byte, parse func(*report.Documents) error) error {
	if _, there := files[model.ReportFleet]; !there {
		return fmt.Errorf("read branch %s: it has no %s: is it the branch that Ingot writes?", f.Branch, model.ReportFleet)
	}
	docs, err := report.ReadDocuments(files)
	if docs.Fleet == nil {
		return err
	}
	return errors.Join(parse(docs), err)
}

// follow sends the changes of the daemon; nil if the status branch is read.
func (f fleetSource) follow(ctx context.Context, c *console) <-chan change {
	if f.Git != "" {
		return nil
	}
	client, err := f.client(c)
	if err != nil {
		return nil
	}
	return client.follow(ctx)
}

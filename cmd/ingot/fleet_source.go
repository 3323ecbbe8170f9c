package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// defaultAddress is the admin listener of a daemon on this machine.
const defaultAddress = "http://127.0.0.1:8080"

// fleetSource says where the state of a fleet is read.
type fleetSource struct {
	Address string `placeholder:"URL" xor:"source" help:"The admin listener of the daemon. Default: http://127.0.0.1:8080."`
	Git     string `xor:"source" placeholder:"URL" help:"Read the status branch of this repository instead; a URL or a path."`
	Branch  string `default:"status" placeholder:"NAME" help:"The status branch. Default: ${default}."`

	Auth gitAuthFlags `embed:"" prefix:"git-"`

	quiet bool // it was said already that no daemon answers
}

// read asks the daemon, or reads the status branch: of the repository that --git names, or,
// where no daemon was named and none answers, of the clone that the working directory is in.
func (f fleetSource) read(ctx context.Context, c *console, ask func(*adminClient) error, parse func(files map[string][]byte) error) error {
	if f.Git != "" {
		files, err := readStatusBranch(ctx, c, f.Git, f.Branch, f.Auth)
		if err != nil {
			return err
		}
		return parse(files)
	}
	address := f.daemonAddress(c)
	client, err := newAdminClient(address)
	if err != nil {
		return err
	}
	if err = ask(client); f.Address != "" || !errors.Is(err, errNoDaemon) {
		return err
	}
	g, cloned := openClone(ctx, c, ".", "origin")
	if cloned != nil {
		return err
	}
	b, cloned := g.branch(ctx, f.Branch)
	if cloned != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(c.err, "ingot: %s at %s: this is %s of the clone here, written %s ago; git fetch brings what is newer\n",
			errNoDaemon, address, strings.TrimPrefix(strings.TrimPrefix(b.ref, "refs/"), "remotes/"), age(b.written, time.Now()))
	}
	files, err := g.files(ctx, b)
	if err != nil {
		return err
	}
	return parse(files)
}

// daemonAddress is where the daemon is asked.
func (f fleetSource) daemonAddress(c *console) string {
	return cmp.Or(f.Address, c.daemon, defaultAddress)
}

// follow tells of what changes at the daemon, if it is the one that is asked; nil = nobody
// tells.
func (f fleetSource) follow(ctx context.Context, c *console) <-chan news {
	if f.Git != "" {
		return nil
	}
	client, err := newAdminClient(f.daemonAddress(c))
	if err != nil {
		return nil
	}
	return client.follow(ctx)
}

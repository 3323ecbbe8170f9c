package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ingot/bmc/sim"
	"ingot/cmd/daemon"
	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// demoPoll is how often the demo asks its daemon.
const demoPoll = 200 * time.Millisecond

type demoCommand struct {
	Servers int           `default:"6" placeholder:"N" help:"How many simulated servers. Default: ${default}."`
	BMCs    int           `name:"bmcs" placeholder:"N" help:"How many BMCs. Default: one for every two servers."`
	Script  bool          `help:"Claim a server and release it by commits, print what happened, and exit."`
	Fast    bool          `help:"Leave out the simulated delays of real machines."`
	Dir     string        `type:"path" placeholder:"DIR" help:"Work in this empty folder and keep it. Default: a temporary folder, removed at the end."`
	Keep    bool          `help:"Keep the temporary folder."`
	Timeout time.Duration `default:"5m" placeholder:"TIME" help:"Give up on a step of the script after this time. Default: ${default}."`
}

// Help implements kong.HelpProvider.
func (demoCommand) Help() string {
	return `Starts a rack of simulated servers, a Git repository that describes them, a registry with a tiny disk image, and the daemon, all in this process and on loopback. Machines on loopback cannot be distinguished, so boot.bindTickets is nothing. It shows each server come up, and how to claim one with a commit. Ctrl-C stops it and cleans up.

Examples:

  ingot demo                              watch, and claim a server yourself
  ingot demo --script                     let it claim and release a server
  ingot demo --script --fast --servers 100 -o json`
}

// Validate implements kong's validation of flags.
func (d *demoCommand) Validate() error {
	switch {
	case d.Servers < 1 || d.Servers > sim.MaxBMCs:
		return fmt.Errorf("--servers %d is not allowed: must be 1 to %d", d.Servers, sim.MaxBMCs)
	case d.BMCs < 0 || d.BMCs > 0 && d.Servers%d.BMCs != 0:
		return fmt.Errorf("--bmcs %d is not allowed: %d servers cannot be shared out evenly", d.BMCs, d.Servers)
	case d.Timeout <= 0:
		return fmt.Errorf("--timeout %s is not allowed: must be longer than 0s", d.Timeout)
	}
	return nil
}

// layout returns how many BMCs there are and how many servers are behind each.
func (d *demoCommand) layout() (bmcs, perBMC int) {
	switch {
	case d.BMCs > 0:
		return d.BMCs, d.Servers / d.BMCs
	case d.Servers%2 == 0:
		return d.Servers / 2, 2
	}
	return d.Servers, 1
}

// Run shows the demo until ctx is done or its script is.
func (d demoCommand) Run(ctx context.Context, c *console) (err error) {
	progress := c.out
	if c.json() {
		progress = c.err // so that the output is one JSON document
	}
	fmt.Fprintf(progress, "Starting a simulated rack, a Git repository and the daemon, all on loopback.\n")
	w, err := newDemoWorld(d, c.log)
	if err != nil {
		return fmt.Errorf("set up the demo: %w", err)
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	err = w.run(ctx, func(ctx context.Context, fleet *adminClient) error {
		s := &demoShow{demoCommand: d, console: c, world: w, fleet: fleet, began: time.Now(), progress: progress}
		return s.show(ctx)
	})
	if d.Dir != "" || d.Keep {
		fmt.Fprintf(c.err, "The repository and the state are kept in %s\n", w.dir)
	}
	return err
}

// run starts everything, calls show with a client of the daemon, and stops
// everything when show returns or ctx is done.
func (w *demoWorld) run(ctx context.Context, show func(context.Context, *adminClient) error) error {
	// the rack outlives the daemon, which closes its sessions on the way out
	rackCtx, stopRack := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRack()
	var outer errgroup.Group
	outer.Go(func() error { return w.rack.Run(rackCtx) })

	inner, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready := make(chan daemon.Addresses, 1)
	inner.Go(func() error {
		defer stop()
		return daemon.Run(ctx, w.options, daemon.Environment{Log: w.log, Version: thisBuild().Version, Ready: func(a daemon.Addresses) {
			// before anything starts, so that no server boots without it
			w.rack.SetBootURL("http://" + a.Boot)
			ready <- a
		}})
	})
	inner.Go(func() error {
		defer stop()
		select {
		case <-ctx.Done():
			return nil
		case a := <-ready:
			fleet, err := newAdminClient(a.Admin, daemonFlags{})
			if err != nil {
				return err
			}
			return show(ctx, fleet)
		}
	})
	err := inner.Wait()
	stopRack()
	return errors.Join(err, outer.Wait())
}

// demoShow shows what happens in the world of the demo.
type demoShow struct {
	demoCommand
	*console
	world    *demoWorld
	fleet    *adminClient
	began    time.Time
	progress io.Writer

	seen     *report.Documents
	timeline []transition
}

// show shows what happens; with --script it also commits the claim and its removal.
func (s *demoShow) show(ctx context.Context) error {
	bmcs, _ := s.layout()
	s.say("%s behind %s, in %s. Web page: %s/\n\n",
		text.Plural(s.Servers, "server"), text.Plural(bmcs, "BMC"), s.world.dir, s.fleet.base)
	if s.Script {
		return s.script(ctx)
	}
	err := s.await(ctx, "all servers are Available", s.allAvailable)
	if err != nil {
		return s.interrupted(err)
	}
	s.say("%s", s.invitation())
	never := func(*report.Documents) (bool, string) { return false, "" }
	return s.interrupted(s.await(ctx, "", never))
}

// interrupted returns nil for Ctrl-C, by which a user who watches ends the demo.
func (s *demoShow) interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (s *demoShow) say(format string, args ...any) { fmt.Fprintf(s.progress, format, args...) }

func (s *demoShow) invitation() string {
	return fmt.Sprintf(`
All %d servers are Available after %.0f s. Claim one in another terminal:

  cd %s
  export INGOT_ADDRESS=%s
  cp %s fleet/%s
  git -C fleet add . && git -C fleet commit -qm "claim a server"
  git -C fleet push -q && ./ingot status --wait claim web-1

Give it back, which wipes its disks:

  git -C fleet rm -q %[6]s
  git -C fleet commit -qm "release it" && git -C fleet push -q

A tour: preview of a commit before its push, state of a server, approval of
steps that the guard holds back, and the web page.

  git -C fleet fetch -q; ./ingot plan --repository fleet
  ./ingot explain server %[7]s
  git -C fleet pull -q; ./ingot approve --repository fleet --push
  %[4]s/

Ctrl-C ends the demo.

`, s.Servers, time.Since(s.began).Seconds(), s.world.dir, s.fleet.base, claimFile, claimPath,
		s.seen.List(report.Servers)[0].Name())
}

// await shows what changes until done returns true, or ctx is done. done also returns what is
// still missing. what names in the error what was waited for.
func (s *demoShow) await(ctx context.Context, what string, done func(*report.Documents) (bool, string)) error {
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	missing := "the daemon has not answered"
	for {
		now, err := s.fleet.documents(ctx, report.Servers, report.Claims)
		switch {
		case err == nil:
			s.note(now)
			var ok bool
			if ok, missing = done(now); ok {
				return nil
			}
		case ctx.Err() == nil:
			missing = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, context.Cause(ctx), missing)
		case <-tick.C:
		}
	}
}

func (s *demoShow) note(now *report.Documents) {
	if s.seen == nil {
		s.seen = report.NewDocuments(nil, nil)
	}
	at := time.Since(s.began)
	for _, t := range transitions(s.seen, now, at) {
		s.timeline = append(s.timeline, t)
		s.say("%s\n", t)
	}
	for _, p := range now.Fleet.Problems {
		if s.seen.Fleet == nil || !slices.Contains(s.seen.Fleet.Problems, p) {
			s.say("%7.1fs  %s\n", at.Seconds(), printable(p.String()))
		}
	}
	s.seen = now
}

// allAvailable reports whether every server is known and Available, and which are not.
func (s *demoShow) allAvailable(now *report.Documents) (bool, string) {
	available := 0
	var others []string
	for _, server := range now.List(report.Servers) {
		o := server.Overview()
		if o.Summary.State == string(model.StateAvailable) {
			available++
			continue
		}
		others = append(others, fmt.Sprintf("%s is %s%s", server.Name(), o.Summary.State, prefixed(": ", waitingText(o.First()))))
	}
	if available == s.Servers && len(others) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d servers are Available; %s", available, s.Servers, firstFew(others))
}

// firstFew joins some lines and says how many more there are.
func firstFew(lines []string) string {
	const few = 3
	if len(lines) <= few {
		return strings.Join(lines, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), len(lines)-few)
}

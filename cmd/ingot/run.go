package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"ingot/cmd/daemon"
	"ingot/cmd/daemon/config"
)

// gcPercent is a quarter of Go's default. At 1,000 servers the daemon takes 127 MiB with it instead of 140 MiB with
// half of the default, and no more CPU than the measurement varies. GOGC overrules it.
const gcPercent = 25

type runCommand struct {
	Config   string `short:"c" env:"INGOT_CONFIG" placeholder:"FILE" help:"The configuration file. Default: ingot.yaml in the working directory, if there is one; else all settings come from the environment."`
	TakeOver string `placeholder:"ID" help:"Take over from the process of this ID, which wrote the status branch last and may be running. Use it only if you are certain that it does not run again."`
	config.Tuning
}

// Help implements kong.HelpProvider.
func (runCommand) Help() string {
	return `Follows the branch that git.url and git.branch name, and carries out what it says, until SIGINT or SIGTERM. Unknown keys and invalid values are refused, with their line.

Every key of the file can also be set by an environment variable: guard.maxDisruptions is INGOT_GUARD_MAX_DISRUPTIONS. A variable overrides the file. Secrets are in files of their own, which the settings name.

SIGHUP fetches the repository at once, in addition to every git.interval: send it after a push, or let the Git host announce pushes to webhook.listen.

One Ingot acts for a repository. Started with a store of its own while the one that wrote the status branch last may be running, it refuses, prints the ID of that process, and exits with code 4; --take-over=ID takes over from it.

The minimal configuration:

  git: {url: https://git.example.com/infra/metal.git}

Examples:

  ingot run --config ingot.yaml
  INGOT_GIT_URL=https://git.example.com/infra/metal.git ingot run`
}

// Run runs the daemon until ctx is done.
func (r runCommand) Run(ctx context.Context, c *console) error {
	opts, err := config.Load(configFile(r.Config), c.daemonEnv())
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	// Otherwise a write to standard error ends the process once nobody reads its log any more. A
	// handler, unlike what is ignored, is not passed on to programs that are started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	opts.Tuning, opts.TakeOver = r.Tuning, r.TakeOver
	return daemon.Run(ctx, opts, daemon.Environment{
		Log:     c.log,
		Version: thisBuild().Version,
		Wake:    hangup,
		Ready: func(a daemon.Addresses) {
			c.log.Info("listening", "boot", a.Boot, "registry", a.Registry, "metadata", a.Metadata, "admin", a.Admin, "webhook", a.Webhook)
			if err := notifySystemd(os.Getenv("NOTIFY_SOCKET"), "READY=1"); err != nil {
				c.log.Warn("the service manager was not told that Ingot is ready", "err", err)
			}
		},
	})
}

// defaultConfig is the configuration file that is read when none is named, if it exists.
const defaultConfig = "ingot.yaml"

// configFile is the configuration file to read; "" = none, all settings come from the environment.
func configFile(named string) string {
	if named != "" {
		return named
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig
	}
	return ""
}

// daemonEnv is the environment without the variables of the command line.
func (c *console) daemonEnv() []string {
	return slices.DeleteFunc(slices.Clone(c.env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(commandLineVariables, name)
	})
}

// notifySystemd sends the service manager a change of state, such as READY=1, if it
// wants to know (sd_notify(3)).
func notifySystemd(socket, state string) error {
	if socket == "" {
		return nil
	}
	if name, ok := strings.CutPrefix(socket, "@"); ok {
		socket = "\x00" + name
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // what was written has gone
	_, err = c.Write([]byte(state))
	return err
}

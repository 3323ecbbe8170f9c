package main

import (
	"context"
	"slices"
	"strings"

	"ingot/cmd/daemon/check"
	"ingot/cmd/daemon/config"
)

type checkCommand struct {
	Config string `short:"c" env:"INGOT_CONFIG" placeholder:"FILE" help:"The configuration file. Default: ingot.yaml in the working directory, if there is one; else all settings come from the environment."`
}

// Help implements kong.HelpProvider.
func (checkCommand) Help() string {
	return `Checks whether the configuration is right, the repository can be read and pushed to, store, keys and folders can be used, the clock agrees with the Git host's, ports and capabilities are there, servers are told an address that leads here, boot loaders and the probe's image are there for each architecture, another DHCP server answers, and disks have room. It changes nothing, and needs no daemon: listeners are opened for a moment, and on each DHCP network one DISCOVER is sent, which takes no address.

Run it as the user that runs the daemon, with its capabilities. Exit code 1 when something is wrong. What is wrong does not always keep the daemon from starting: that refuses only what cannot work.

Examples:

  ingot check --config /etc/ingot/ingot.yaml
  ingot check -c ingot.yaml -o json | jq -r '.[] | select(.outcome == "wrong") | .check'`
}

// Run prints what was found.
func (k checkCommand) Run(ctx context.Context, c *console) error {
	opts, err := config.Load(configFile(k.Config), c.daemonEnv())
	var results []check.Result
	if err != nil {
		results = wrongConfiguration(err)
	} else {
		results = append([]check.Result{{Check: "configuration", Outcome: check.OK, Message: "is right"}}, check.Run(ctx, &opts)...)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.json() {
		err = c.printJSON(results)
	} else {
		err = nil
		c.printChecks(results)
	}
	isWrong := func(r check.Result) bool { return r.Outcome == check.Wrong }
	if err == nil && slices.ContainsFunc(results, isWrong) {
		return exitStatus(exitFailed)
	}
	return err
}

// wrongConfiguration has a result for each problem of a configuration.
func wrongConfiguration(err error) []check.Result {
	var results []check.Result
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		results = append(results, check.Result{Check: "configuration", Outcome: check.Wrong, Message: line, Fix: "correct it; nothing else was checked"})
	}
	return results
}

// printChecks prints a row for each result.
func (c *console) printChecks(results []check.Result) {
	colours := map[check.Outcome]colour{check.OK: green, check.Wrong: red, check.Skipped: faint}
	var rows [][]cell
	for _, r := range results {
		text := r.Message
		if r.Fix != "" {
			text += ". " + strings.ToUpper(r.Fix[:1]) + r.Fix[1:]
		}
		rows = append(rows, []cell{{string(r.Outcome), colours[r.Outcome]}, textCell(r.Check), textCell(text)})
	}
	c.printTable([]string{"RESULT", "CHECK", "FOUND"}, rows)
}

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
	return `Checks that the configuration is valid, the repository can be read and pushed to, the store, keys and folders can be used, the clock agrees with the Git host's, ports are free and capabilities are present, servers are given an address that leads here, boot loaders and the discovery image exist for each architecture, no unexpected DHCP server answers, and there is enough disk space. It changes nothing and needs no daemon: listeners are opened briefly, and one DISCOVER, which takes no address, is sent on each DHCP network.

Run it as the user that runs the daemon, with the same capabilities. Exits 1 if anything is wrong. Not everything that is wrong keeps the daemon from starting: it refuses only what cannot work or would be unsafe.

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

func wrongConfiguration(err error) []check.Result {
	var results []check.Result
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		results = append(results, check.Result{Check: "configuration", Outcome: check.Wrong, Message: line, Fix: "correct it; nothing else was checked"})
	}
	return results
}

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

package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ingot/bmc/sim"
	"ingot/cmd/daemon"
)

// The exit codes. `ingot plan` has 2 and 3 for its findings: templates of CI systems let them pass, so that wrong usage of
// it is exitFailed.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitChanges     = 2
	exitDestructive = 3
	// exitAnother is for a daemon beside which another one acts: starting it again is no use.
	exitAnother = 4
)

// errUsage is a command line that the command cannot follow.
type errUsage struct{ error }

func usageError(format string, args ...any) error { return errUsage{fmt.Errorf(format, args...)} }

// exitStatus is an exit code of a command that did what it was asked for.
type exitStatus int

// Error implements error.
func (e exitStatus) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

const description = `Ingot runs bare metal from a Git repository, without Kubernetes.

Commit a ServerClaim, and a server is chosen, installed and booted; remove it, and the server is wiped and free again. Ingot writes what it knows to the branch "status" of the same repository.

Exit codes: 0 success, 1 failure, 2 wrong usage; plan: 2 changes, 3 destructive changes, 1 for wrong usage as well; run: 4 another Ingot acts for the repository; status --exit-code: 5 action is needed, 6 something is in progress.

Examples:

  ingot demo                        try everything on this machine, with nothing else needed
  ingot bmc check --address 192.0.2.10 --username root --password-file bmc.password
                                    check what works on your own BMC, changing nothing
  ingot init fleet                  create a repository to start from
  ingot claim web-1 --image IMAGE   write a claim, ready to commit
  ingot validate fleet/             check manifests before you commit them
  ingot plan                        what merging this branch does to each machine
  ingot check --config ingot.yaml   check everything that a first start may fail on
  ingot run --config ingot.yaml     run the daemon
  ingot status                      the state of everything, and what it waits for
  ingot explain server rack1-03     why a server is not in the state it should be in
  ingot approve                     read what is held back, and approve it`

// commandLine is the whole command line; kong fills it in.
type commandLine struct {
	Output    string `short:"o" default:"text" placeholder:"FORMAT" help:"Output format: text or json; some commands have more, see their help."`
	LogLevel  string `enum:",debug,info,warn,error" default:"" env:"INGOT_LOG_LEVEL" placeholder:"LEVEL" help:"Lowest level to log: debug, info, warn or error. Default: info for run, warn for other commands."`
	LogFormat string `enum:"text,json" default:"text" env:"INGOT_LOG_FORMAT" placeholder:"FORMAT" help:"Format of the log on standard error: text or json."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Run      runCommand      `cmd:"" help:"Run the daemon."`
	Demo     demoCommand     `cmd:"" help:"Try it: a simulated rack and everything else on loopback, without root or network."`
	Sim      simCommand      `cmd:"" help:"Run only a simulated rack of BMCs and servers."`
	Validate validateCommand `cmd:"" help:"Check manifests before they are committed."`
	Status   statusCommand   `cmd:"" help:"Show servers, claims and what they wait for."`
	Explain  explainCommand  `cmd:"" help:"Explain a server, claim, boot configuration, BMC or endpoint: what it waits for, and how far its boot got."`
	Leases   leasesCommand   `cmd:"" help:"Show the DHCP leases: which device has which address."`
	BMC      bmcCommand      `cmd:"" name:"bmc" help:"Check a BMC."`
	Plan     planCommand     `cmd:"" help:"Show what merging a branch will do to each machine."`
	Approve  approveCommand  `cmd:"" help:"Show what is held back, and make the commit that approves it."`
	Check    checkCommand    `cmd:"" help:"Check everything that a first start of the daemon may fail on. Changes nothing."`
	Image    imageCommand    `cmd:"" help:"Make, inspect, push and pull boot images."`
	Init     initCommand     `cmd:"" help:"Create a new repository and its configuration."`
	Claim    claimCommand    `cmd:"" help:"Write the manifest of a claim into a clone of the repository."`
	Import   importCommands  `cmd:"" help:"Create a repository from a cluster that runs metal-operator, or Endpoints from a CSV file."`
	Schema   schemaCommand   `cmd:"" help:"Print the JSON Schema of manifests, for editors."`
	Version  versionCommand  `cmd:"" help:"Print the version."`

	Completion completionCommand `cmd:"" help:"Print the completion script for a shell."`
	Man        manCommand        `cmd:"" hidden:"" help:"Write the manual pages."`
	Complete   completeCommand   `cmd:"" hidden:"" name:"__complete" help:"Complete a command line."`
}

// commandLineVariables are the INGOT_ variables that are flags of the command line, not
// settings of the daemon.
var commandLineVariables = []string{
	"INGOT_CONFIG", "INGOT_LOG_LEVEL", "INGOT_LOG_FORMAT", addressVariable, caVariable, usernameVariable, passwordVariable,
}

// execute runs the command that args name and returns the exit code.
func execute(ctx context.Context, args []string, c *console) int {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name("ingot"),
		kong.Description(description),
		kong.Writers(c.out, c.err),
		kong.Vars{"personalities": strings.Join(sim.Personalities(), ", "), "version": versionLine()},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		panic(err) // commandLine itself is wrong, whatever the arguments are
	}
	if len(args) > 0 && args[0] == "help" { // as git has it
		args = append(slices.Clone(args[1:]), "--help")
	}
	c.plans = slices.Contains(args, "plan")
	parsed, err := parser.Parse(args)
	if err != nil {
		return c.fail(usageError("%w; see %s --help", err, commandOf(err)))
	}
	c.plans = parsed.Command() == "plan"
	if c.format, err = formatOf(parsed, line.Output); err != nil {
		return c.fail(errUsage{err})
	}
	c.log = newLogger(c.err, line.LogLevel, line.LogFormat, parsed.Command())
	err = parsed.Run()
	var status exitStatus
	switch {
	case c.unwritten != nil && (err == nil || errors.As(err, &status)):
		return c.fail(fmt.Errorf("print the result: %w", c.unwritten))
	case errors.As(err, &status):
		return int(status)
	case err != nil:
		return c.fail(err)
	}
	return exitFine
}

// commandOf is the command whose arguments cannot be parsed, as far as that is known.
func commandOf(err error) string {
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "ingot"
}

// formatter is a command whose results are printed in other formats than text and JSON.
type formatter interface{ formats() []string }

// formatOf returns the format that was asked for, if the command has it.
func formatOf(parsed *kong.Context, format string) (string, error) {
	known := []string{"text", "json"}
	command := parsed.Selected()
	if f, ok := reflect.TypeAssert[formatter](command.Target); ok {
		known = f.formats()
	}
	if !slices.Contains(known, format) {
		return "", fmt.Errorf("-o %s: %s prints %s; see %[2]s --help", format, command.FullPath(), strings.Join(known, ", "))
	}
	return format, nil
}

// fail prints why a command failed, and returns its exit code.
func (c *console) fail(err error) int {
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(c.err, "ingot: %s\n", printable(line)) // it may repeat what another host said
	}
	_, usage := errors.AsType[errUsage](err)
	switch {
	case errors.Is(err, daemon.ErrAnotherIngot):
		return exitAnother
	case usage && !c.plans:
		return exitUsage
	}
	return exitFailed
}

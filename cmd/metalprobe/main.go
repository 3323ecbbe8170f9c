// Metalprobe is the agent that runs on a server while Ingot discovers it or cleans it
// up: it reports the machine's inventory, and wipes its disks on request.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"ingot/cmd/metalprobe/machine"
)

var version string

func main() {
	switch machine.RoleOf(os.Args, os.Getpid(), os.Getppid()) {
	case machine.RoleSupervisor:
		machine.Supervise()
	case machine.RolePowerOff:
		machine.PowerOff()
	case machine.RoleReboot:
		machine.Restart()
	case machine.RoleWorker:
		exit(machine.Run(runOnMachine))
	case machine.RoleModprobe:
		exit(machine.Modprobe(os.Args[1:]))
	case machine.RoleNone:
		err := runAsProgram()
		if errors.Is(err, machine.ErrPowerOff) {
			machine.PowerOff()
			err = errors.New("the machine cannot be powered off: is this program privileged?")
		}
		exit(err)
	}
}

// exit prints err and ends the process with code 1, if there is an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "metalprobe:", err)
		os.Exit(1)
	}
}

// runAsProgram is metalprobe as people and service managers start it.
func runAsProgram() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// runOnMachine is metalprobe as the machine's only program, with the flags of the
// unit that would start it elsewhere.
func runOnMachine(ctx context.Context, flags []string, log *slog.Logger) error {
	o, err := parse(append(slices.Clip(flags), "--power-off"), io.Discard)
	if err != nil {
		return fmt.Errorf("flags of the Ignition's unit: %w", err)
	}
	return newAgent(o, log).do(ctx, io.Discard)
}

// run is the program without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return newAgent(o, slog.New(slog.NewTextHandler(stderr, nil))).do(ctx, stdout)
}

// buildVersion is the version that the linker set, else the revision that the Go command
// recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}

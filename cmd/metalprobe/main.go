// Metalprobe is the agent that runs on a server while Ingot discovers it or
// cleans it up: it reports what the machine is made of, and wipes its disks when
// it is told to.
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
	"syscall"

	"ingot/cmd/metalprobe/inventory"
	"ingot/cmd/metalprobe/wipe"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "metalprobe:", err)
		os.Exit(1)
	}
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
	log := slog.New(slog.NewTextHandler(stderr, nil))
	a := &agent{
		options: o,
		host:    inventory.Local(log),
		wiper:   wipe.Local(log),
		post:    newClient(o.timeout).post,
		log:     log,
	}
	switch {
	case o.version:
		_, err = fmt.Fprintln(stdout, "metalprobe", buildVersion())
		return err
	case o.json:
		return a.print(ctx, stdout)
	case o.dryRun:
		return a.printChoices(stdout)
	case o.wipe != "":
		return a.cleanUp(ctx)
	}
	return a.register(ctx)
}

// buildVersion is the version that the linker was given, else the revision that
// the Go command noted.
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

// Containerimage writes the container image of Ingot as an OCI image layout, without a container
// engine: one image for each architecture, all in one index. Of the same programs and time it
// writes the same bytes.
//
//	containerimage OUT VERSION TIME ARCHITECTURE=ROOT...
//
// TIME is in seconds since 1970; ROOT has usr/bin/ingot and usr/bin/metalprobe.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "containerimage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	const rootsAt = 3
	if len(args) <= rootsAt {
		return fmt.Errorf("want OUT VERSION TIME ARCHITECTURE=ROOT..., got %q", args)
	}
	made, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("the time: %w", err)
	}
	var roots []root
	for _, arg := range args[rootsAt:] {
		architecture, dir, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: want ARCHITECTURE=ROOT", arg)
		}
		roots = append(roots, root{architecture: architecture, dir: dir})
	}
	return layout{dir: args[0], version: args[1], made: time.Unix(made, 0).UTC()}.write(roots)
}

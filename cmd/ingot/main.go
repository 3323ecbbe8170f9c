// Command ingot runs bare metal from a Git repository: servers are claimed,
// installed, released and wiped by commits, and what became of them is written
// to a branch of the same repository.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// a second signal ends the program at once
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], &console{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ(),
		terminal: isTerminal(os.Stdout), dimensions: sizeOf(os.Stdout), person: isTerminal(os.Stdin),
	}))
}

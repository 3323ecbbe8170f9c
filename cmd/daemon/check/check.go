// Package check checks what a first start of the daemon may fail on, and changes
// nothing. Each check is a function of the configuration with a Result; where the daemon has
// code for what is checked, that is what is asked.
package check

import (
	"context"
	"sync"
	"time"

	"ingot/cmd/daemon/config"
)

// Outcome is what became of a check.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Wrong   Outcome = "wrong"
	Skipped Outcome = "skipped"
)

// Result is what a check found.
type Result struct {
	Check   string  `json:"check"` // the key, or what was checked
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message"`
	Fix     string  `json:"fix,omitempty"` // what to do about it
}

func ok(check, message string) Result         { return Result{check, OK, message, ""} }
func wrong(check, message, fix string) Result { return Result{check, Wrong, message, fix} }
func skipped(check, message string) Result    { return Result{check, Skipped, message, ""} }

const wait = 10 * time.Second

type check func(context.Context, *config.Options) []Result

// Listeners are opened for a moment by some checks, so those run one after the other.
var checks = [][]check{{gitAccess}, {clock}, {store}, {sealKey, stateDir, space}, {listeners, urls, dhcpSockets, dhcpServers}, {loaders, files, folders}, {image}}

// Run makes all checks, and returns their results in a fixed order.
func Run(ctx context.Context, o *config.Options) []Result {
	found := make([][]Result, len(checks))
	var all sync.WaitGroup
	for i, group := range checks {
		all.Go(func() {
			for _, look := range group {
				found[i] = append(found[i], look(ctx, o)...)
			}
		})
	}
	all.Wait()
	var results []Result
	for _, group := range found {
		results = append(results, group...)
	}
	return results
}

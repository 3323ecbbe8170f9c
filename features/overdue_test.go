package features

import (
	"bytes"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"
)

// siteLimit is how long a site may be there: many times what the longest takes on a
// slow machine.
const siteLimit = 6 * time.Minute

// dieIfOverdue ends the tests if the site is still there after the limit, and says
// what is being waited for. Else the tests' own limit would end them, with so long a
// list of goroutines that nobody finds what hangs.
func (w *site) dieIfOverdue() *time.Timer {
	return time.AfterFunc(siteLimit, func() {
		fmt.Fprintf(os.Stderr, "\n%q on %s, seed %d, has not ended after %s. What is waited for:\n\n%s\n",
			w.name, w.store, w.seed, siteLimit, ourStacks())
		os.Exit(1) // programs that were started die along
	})
}

func ourStacks() string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return err.Error()
	}
	var ours []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "ingot/features.") && !strings.Contains(stack, "ingot/features.ourStacks") {
			ours = append(ours, stack)
		}
	}
	return strings.Join(ours, "\n\n")
}

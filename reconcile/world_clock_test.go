package reconcile

import (
	"testing/synctest"
	"time"

	"ingot/model"
)

// expect lets virtual time pass and compares.
func (w *loopWorld) expect(after time.Duration, server int, want string) {
	w.t.Helper()
	pass(after)
	if got := w.state(server); got != want {
		for _, s := range w.plan().Servers {
			w.t.Logf("%s %s: %+v", s.Name, s.Record.Life.State, s.Why)
		}
		w.t.Fatalf("server %d is %q after %v, want %q", server, got, after, want)
	}
}

// pass lets virtual time pass, and everything that it brings come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// untilState lets time pass until the first server is in a state.
func (w *loopWorld) untilState(state model.ServerState) {
	for rec := w.Observed().Servers["bmc00-system-0"]; rec == nil || rec.Life.State != state; rec = w.Observed().Servers["bmc00-system-0"] {
		pass(100 * time.Millisecond)
	}
}

// untilArmed lets time pass until a server has an open ticket.
func (w *loopWorld) untilArmed(i int) {
	for !w.Observed().Servers[w.machine(i).name].Boot.Ticket.Open() {
		pass(time.Minute)
	}
}

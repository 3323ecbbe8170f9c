package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// From the commit of a claim to the request that powers its server on, the store is
// written three times, and once more when the request was answered. What comes after that
// is about the machine's boot.
func TestHowOftenTheStoreIsWrittenForAClaim(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		var wrote []string
		w.mu.Lock()
		w.onSave = func(c proposal.Changes) { wrote = append(wrote, whatIsSaved(&c)) }
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(3 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		want := []string{"claim and binding", "ticket with what it serves", "power request, before it is made", "power request, made"}
		if diff := cmp.Diff(want, wrote[:min(len(want), len(wrote))]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		w.onSave = nil
	})
}

// whatIsSaved says what one save is about.
func whatIsSaved(c *proposal.Changes) string {
	if len(c.Servers) != 1 {
		return "something else"
	}
	switch rec := c.Servers[0]; {
	case len(c.Claims) == 1 && rec.Claim.Name != "" && !rec.Boot.Ticket.Open():
		return "claim and binding"
	case rec.Boot.Ticket.Open() && !c.Payloads[rec.Boot.Ticket.ID].IsZero():
		return "ticket with what it serves"
	case rec.Power.Asked.Unsure:
		return "power request, before it is made"
	}
	return "power request, made"
}

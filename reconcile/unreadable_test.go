package reconcile

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
)

// While a server is known by its name alone, any system that is seen for the first time
// may be that server, and its claim may be served already.
func TestWhatMayBeAnUnreadableServerIsLeftAloneUntilItIsGivenUp(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.observed.Fleet.Unreadable = []model.UnreadableRecord{
			{Server: "lost", Claim: "default/web", Since: time.Now(), Token: "one"},
			{Server: "lost too", Since: time.Now(), Token: "two"},
		}
		w.desired.Add(claim("web"))
	}, func(t *testing.T, w *loopWorld) {
		left := func(when, token string) {
			t.Helper()
			pass(time.Hour)
			if o := w.Observed(); len(o.Servers) > 0 || w.seen(0).ons > 0 {
				t.Errorf("%s: the system is taken for a new server: %+v", when, o.Servers)
			}
			if said := w.plan().BMCs[0].Problems; len(said) != 1 || !strings.Contains(said[0], "Ingot-Approve: "+token) {
				t.Errorf("%s: its BMC says %q", when, said)
			}
		}
		left("at first", "one")
		if why := plantest.ClaimWhy(w.loop.Input(time.Now()), "default/web"); why.Reason != string(model.DoubtUnreadable) ||
			!strings.Contains(why.Message, "Ingot-Approve: one") {
			t.Errorf("the claim says %+v", why)
		}
		w.commit(func(d *model.Desired) { d.Approvals = []string{"one"} })
		left("with one of two given up", "two")
		w.commit(func(d *model.Desired) { d.Approvals = []string{"two"} })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if left := w.Observed().Fleet.Unreadable; len(left) > 0 {
			t.Errorf("still listed are %+v", left)
		}
	})
}

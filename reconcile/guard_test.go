package reconcile

import (
	"fmt"
	"testing"
	"time"

	"ingot/model"
)

func TestTooManyServersAreNotSwitchedOffUnapproved(t *testing.T) {
	live(t, 12, func(t *testing.T, w *loopWorld) {
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		w.serve(names...)
		w.commit(func(d *model.Desired) {
			for _, n := range names {
				d.Add(claim(n, func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
			}
		})
		pass(30 * time.Minute)
		for i := range 12 {
			w.expect(0, i, "Reserved On default/"+names[i])
		}
		tokens := w.tokens()
		w.commit(func(d *model.Desired) { d.Approvals = tokens })
		for i := range 12 {
			w.expect(10*time.Minute, i, "Reserved Off default/"+names[i])
		}
	})
}

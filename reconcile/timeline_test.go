package reconcile

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
)

func TestAServerThatHangsInDiscoverySaysWhere(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.machine(0).liar = true }, func(t *testing.T, w *loopWorld) {
		stages := func() {
			w.mu.Lock()
			rec := w.observed.Servers["bmc00-system-0"]
			w.observed.Progress["bmc00-system-0"] = &model.Progress{Ticket: rec.Boot.Ticket.ID, DHCPAt: time.Now()}
			w.mu.Unlock()
			signal(w.stored)
		}
		w.expect(time.Minute, 0, "Discovery On")
		stages()
		pass(time.Second)
		doc := strings.Join(strings.Fields(w.document("servers/bmc00-system-0.yaml")), " ")
		for _, text := range []string{
			"type: BootProgress", "reason: DHCP", "not seen yet: boot loader by TFTP or HTTP", "- at: ", "last seen asking DHCP",
		} {
			if !strings.Contains(doc, text) {
				t.Errorf("%q is missing in\n%s", text, doc)
			}
		}
		w.expect(2*time.Hour, 0, "Initial On")
		why := w.plan().Servers[0].Why
		for _, text := range []string{"was switched on to be discovered", "last seen asking DHCP", "whether TFTP (UDP port 69)"} {
			if why.Reason != model.ReasonFoundRunning || !strings.Contains(why.Message, text) {
				t.Errorf("%q is missing in %+v", text, why)
			}
		}
	})
}

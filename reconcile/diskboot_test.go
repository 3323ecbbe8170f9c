package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// resetError is why a BMC sets no boot override, as the pool of BMC clients has it.
type resetError struct{ reason, message string }

func (e *resetError) Error() string { return e.message }

func (e *resetError) Reason() string { return e.reason }

func TestAServerWhoseFirmwareAsksTheNetworkFirstIsHealedFromItsDisk(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.netFirst, m.asked, m.sets = true, 0, 0 })
		w.set(w.machine(0), model.PowerOff)
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.asked != 0 || m.sets != 1 || m.installs != 1 {
			t.Errorf("it asked the network %d times with %d overrides, and was installed %d times; want 0, 1 and 1",
				m.asked, m.sets, m.installs)
		}
		cycle := func(v string) { w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(v))) }) }
		cycle(model.OperationPowerCycle)
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			d.Add(fleettest.MaintenanceOf("m", 0))
		})
		w.expect(time.Minute, 0, "Maintenance Off default/web")
		w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.asked != 0 || m.sets != 3 || m.installs != 1 {
			t.Errorf("after a power cycle and maintenance it asked the network %d times with %d overrides, "+
				"and was installed %d times; want 0, 3 and 1", m.asked, m.sets, m.installs)
		}
	})
}

func TestAServerWhoseBMCSetsNoDiskBootIsHealedAllTheSame(t *testing.T) {
	refused := &resetError{"BootOverrideNotKept", "the BMC does not keep the boot override"}
	const text = "False BootOverrideNotKept: its BMC sets no one-time boot from disk, " +
		"so a server that lost power starts from what its boot order has first, and is sent on to its disk from the network: " +
		"have its boot order begin with the disk; to have its BMC asked again, " +
		"set annotation metal.ironcore.dev/operation: retry#1 on Server bmc00-system-0 (the BMC does not keep the boot override)"
	tests := map[string]struct {
		err  error
		sets int // that two heals ask for
		want string
	}{
		"and is not asked again if it refuses":      {refused, 1, text},
		"and is asked again if it only had no time": {&resetError{"ConnectionFailed", "the BMC is busy"}, 2, ""},
		"and is asked again if nobody knows why":    {errors.New("EOF"), 2, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.serve("web")
				w.change(0, func(m *machine) { m.netFirst, m.noDisk, m.sets, m.asked = true, tc.err, 0, 0 })
				for range 2 {
					w.set(w.machine(0), model.PowerOff)
					w.expect(3*time.Minute, 0, "Reserved On default/web")
				}
				if m := w.seen(0); m.sets != tc.sets || m.asked != 2 || m.installs != 1 {
					t.Errorf("%d overrides, %d boots by way of the network, %d installs; want %d, 2 and 1",
						m.sets, m.asked, m.installs, tc.sets)
				}
				got := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "DiskBoot")
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("DiskBoot (-want +got):\n%s", diff)
				}
				w.change(0, func(m *machine) { m.noDisk, m.asked = nil, 0 })
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
				w.set(w.machine(0), model.PowerOff)
				w.expect(3*time.Minute, 0, "Reserved On default/web")
				if m := w.seen(0); m.sets != tc.sets+1 || m.asked != 0 {
					t.Errorf("after a retry %d overrides in all and %d boots by way of the network, want %d and 0",
						m.sets, m.asked, tc.sets+1)
				}
				if got := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "DiskBoot"); got != "" {
					t.Errorf("DiskBoot is still shown: %s", got)
				}
			})
		})
	}
}

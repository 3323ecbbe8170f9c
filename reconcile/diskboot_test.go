package reconcile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// resetError is why a BMC sets no boot override, as the pool of BMC clients has it.
type resetError struct{ reason, message string }

func (e *resetError) Error() string  { return e.message }
func (e *resetError) Reason() string { return e.reason }

func TestWhatBootsFromDiskAsksForThat(t *testing.T) {
	const disk, firmware = "set one-time boot from disk", "1.0"
	off := func(in *Input, rec *model.ServerRecord) {
		in.Observed.ServerFacts[rec.Name] = &model.ServerFacts{Name: rec.Name, Power: model.PowerOff, Inventory: &model.Inventory{}}
	}
	asks := func(operation string) func(*Input, *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(rec.Name), Annotations: map[string]string{model.AnnotationOperation: operation}}})
			rec.HandledOperation = operation
			rec.Operation = &model.Operation{Value: operation, Reset: resets[operation], NotedAt: in.Now}
		}
	}
	always := func(in *Input, rec *model.ServerRecord) {
		annotated(model.AnnotationBoot, "always")(in.Desired.Claims[rec.Claim])
		rec.Ticket = &model.Ticket{ID: "t", Claim: rec.Claim, Purpose: model.PurposeClaim, Always: true, Ended: model.TicketBooted}
	}
	ticket := func(change func(*model.Ticket)) func(*Input, *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			rec.Installed = ""
			rec.Ticket = &model.Ticket{ID: "t", Claim: rec.Claim, Purpose: model.PurposeClaim, Digest: bootDigest(Boot{Image: "os:1"}), ArmedAt: in.Now}
			change(rec.Ticket)
		}
	}
	none := func(of string) func(*Input, *model.ServerRecord) {
		return func(_ *Input, rec *model.ServerRecord) { rec.NoDiskBoot = &model.NoDiskBoot{Firmware: of} }
	}
	state := func(s model.ServerState) func(*Input, *model.ServerRecord) {
		return func(_ *Input, rec *model.ServerRecord) { rec.State = s }
	}
	all := func(changes ...func(*Input, *model.ServerRecord)) func(*Input, *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			for _, change := range changes {
				change(in, rec)
			}
		}
	}
	tests := map[string]struct {
		change func(*Input, *model.ServerRecord)
		want   string
	}{
		"an installed server that lost power":                     {off, disk + ", ask for power On"},
		"one whose BMC refused it with the same firmware is not":  {all(off, none(firmware)), "ask for power On"},
		"one whose BMC refused it with another firmware":          {all(off, none("0.9")), disk + ", ask for power On"},
		"one whose network override is still set loses it before": {all(off, func(_ *Input, rec *model.ServerRecord) { rec.BootRung = RungContinuous }), "clear boot override, " + disk + ", ask for power On"},
		"one that always boots from the network does not":         {all(off, always), "set one-time network boot, ask for power On"},
		"one that was powered off by what installs it": {
			all(off, ticket(func(t *model.Ticket) { t.IgnitionAt = time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC) })), disk + ", ask for power On",
		},
		"a power cycle":                            {asks(model.OperationPowerCycle), disk + ", ask for power PowerCycle"},
		"a hard restart":                           {asks(model.OperationHardRestart), disk + ", ask for power ForceRestart"},
		"a graceful restart":                       {asks(model.OperationGracefulRestart), disk + ", ask for power GracefulRestart"},
		"a restart that is refused an override":    {all(asks(model.OperationPowerCycle), none(firmware)), "ask for power PowerCycle"},
		"a restart of what boots from the network": {all(asks(model.OperationPowerCycle), always), "ask for power PowerCycle"},
		"a restart while it is being installed": {
			all(asks(model.OperationPowerCycle), ticket(func(t *model.Ticket) { t.IgnitionAt = time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC) })), disk + ", ask for power PowerCycle",
		},
		"a restart while its install waits for it to be off": {
			all(asks(model.OperationPowerCycle), ticket(func(t *model.Ticket) { t.Held = true })), disk + ", ask for power PowerCycle",
		},
		"a restart of what has yet to be installed asks for none": {
			all(asks(model.OperationPowerCycle), ticket(func(*model.Ticket) {})), "ask for power PowerCycle",
		},
		"a power-on":                                    {all(off, asks(model.OperationForceOn)), disk + ", ask for power On"},
		"a power-on of what is on asks for none":        {asks(model.OperationForceOn), "ask for power On"},
		"a forced power-off asks for none":              {asks(model.OperationForceOff), "ask for power ForceOff"},
		"a power-on of what was released and retained":  {all(off, asks(model.OperationForceOn), state(model.StateReleased)), disk + ", ask for power On"},
		"a power-on of what has no claim asks for none": {all(off, asks(model.OperationForceOn), state(model.StateAvailable)), "ask for power On"},
		"a power-on of what was wiped in vain asks for none": {
			all(off, asks(model.OperationForceOn), state(model.StateError), func(_ *Input, rec *model.ServerRecord) { rec.Back = model.StateCleanup }), "ask for power On",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers["bmc00000-system-0"]
			in.Observed.BMCFacts[rec.BMC].FirmwareVersion = firmware
			tc.change(in, rec)
			m := Plan(in).Moves[rec.Name]
			if m == nil {
				t.Fatal("nothing is done")
			}
			if got := strings.ReplaceAll(moveText(m), ", then ", ", "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAServerWhoseFirmwareAsksTheNetworkFirstIsHealedFromItsDisk(t *testing.T) {
	live(t, 1, func(t *testing.T, w *world) {
		w.serve("web")
		w.change(0, func(m *machine) { m.netFirst, m.asked, m.sets = true, 0, 0 })
		w.set(w.machine(0), model.PowerOff)
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.asked != 0 || m.sets != 1 || m.installs != 1 {
			t.Errorf("it asked the network %d times with %d overrides, and was installed %d times; want 0, 1 and 1", m.asked, m.sets, m.installs)
		}
		cycle := func(v string) { w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(v))) }) }
		cycle(model.OperationPowerCycle)
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "bmc00-system-0"}}})
		})
		w.expect(time.Minute, 0, "Maintenance Off default/web")
		w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.asked != 0 || m.sets != 3 || m.installs != 1 {
			t.Errorf("after a power cycle and maintenance it asked the network %d times with %d overrides, and was installed %d times; want 0, 3 and 1", m.asked, m.sets, m.installs)
		}
	})
}

func TestAServerWhoseBMCSetsNoDiskBootIsHealedAllTheSame(t *testing.T) {
	refused := &resetError{"BootOverrideNotKept", "the BMC does not keep the boot override"}
	tests := map[string]struct {
		err  error
		sets int // that two heals ask for
		want string
	}{
		"and is not asked again if it refuses":      {refused, 1, "False BootOverrideNotKept: " + noDiskText("bmc00-system-0", &model.NoDiskBoot{Message: refused.message})},
		"and is asked again if it only had no time": {&resetError{"ConnectionFailed", "the BMC is busy"}, 2, ""},
		"and is asked again if nobody knows why":    {errors.New("EOF"), 2, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *world, _ *branch) {
				w.serve("web")
				w.change(0, func(m *machine) { m.netFirst, m.noDisk, m.sets, m.asked = true, tc.err, 0, 0 })
				for range 2 {
					w.set(w.machine(0), model.PowerOff)
					w.expect(3*time.Minute, 0, "Reserved On default/web")
				}
				if m := w.seen(0); m.sets != tc.sets || m.asked != 2 || m.installs != 1 {
					t.Errorf("%d overrides, %d boots by way of the network, %d installs; want %d, 2 and 1", m.sets, m.asked, m.installs, tc.sets)
				}
				if diff := cmp.Diff(tc.want, conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "DiskBoot")); diff != "" {
					t.Errorf("DiskBoot (-want +got):\n%s", diff)
				}
				w.change(0, func(m *machine) { m.noDisk, m.asked = nil, 0 })
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
				w.set(w.machine(0), model.PowerOff)
				w.expect(3*time.Minute, 0, "Reserved On default/web")
				if m := w.seen(0); m.sets != tc.sets+1 || m.asked != 0 {
					t.Errorf("after a retry %d overrides in all and %d boots by way of the network, want %d and 0", m.sets, m.asked, tc.sets+1)
				}
				if got := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "DiskBoot"); got != "" {
					t.Errorf("DiskBoot is still shown: %s", got)
				}
			})
		})
	}
}

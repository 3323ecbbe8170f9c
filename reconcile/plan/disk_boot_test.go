package plan_test

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

func TestWhatBootsFromDiskAsksForThat(t *testing.T) {
	resets := map[string]model.ResetKind{
		model.OperationPowerCycle: model.ResetPowerCycle, model.OperationHardRestart: model.ResetForceRestart,
		model.OperationGracefulRestart: model.ResetGracefulRestart, model.OperationForceOn: model.ResetOn, model.OperationForceOff: model.ResetForceOff,
	}
	const disk, firmware = "set one-time boot from disk", "1.0"
	off := func(in *input, rec *record) {
		in.Observed.ServerFacts[rec.Name] = &model.ServerFacts{Name: rec.Name, Power: model.PowerOff, Inventory: &model.Inventory{}}
	}
	asks := func(operation string) change {
		return func(in *input, rec *record) {
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(rec.Name), Annotations: map[string]string{model.AnnotationOperation: operation}}})
			rec.Requests.HandledOperation = operation
			rec.Requests.Operation = &model.Operation{Value: operation, Reset: resets[operation], NotedAt: in.Now}
		}
	}
	always := func(in *input, rec *record) {
		annotated(model.AnnotationBoot, "always")(in.Desired.Claims[rec.Claim.Name])
		rec.Boot.Ticket = &model.Ticket{ID: "t", Claim: rec.Claim.Name, Purpose: model.PurposeClaim, Always: true, Ended: model.TicketBooted}
	}
	ticket := func(change func(*model.Ticket)) change {
		return func(in *input, rec *record) {
			rec.Install.Digest = ""
			rec.Boot.Ticket = &model.Ticket{
				ID: "t", Claim: rec.Claim.Name, Purpose: model.PurposeClaim, Digest: booting.BootDigest(proposal.Boot{Image: "os:1"}), ArmedAt: in.Now,
			}
			change(rec.Boot.Ticket)
		}
	}
	none := func(of string) change {
		return func(_ *input, rec *record) { rec.Boot.NoDiskBoot = &model.NoDiskBoot{Firmware: of} }
	}
	state := func(s model.ServerState) change { return func(_ *input, rec *record) { rec.Life.State = s } }
	all := func(changes ...change) change {
		return func(in *input, rec *record) {
			for _, change := range changes {
				change(in, rec)
			}
		}
	}
	tests := map[string]struct {
		change change
		want   string
	}{
		"an installed server that lost power":                    {change: off, want: disk + ", ask for power On"},
		"one whose BMC refused it with the same firmware is not": {change: all(off, none(firmware)), want: "ask for power On"},
		"one whose BMC refused it with another firmware":         {change: all(off, none("0.9")), want: disk + ", ask for power On"},
		"one whose network override is still set loses it before": {
			change: all(off, func(_ *input, rec *record) { rec.Boot.OverrideVariant = proposal.VariantContinuous }),
			want:   "clear boot override, " + disk + ", ask for power On",
		},
		"one that always boots from the network does not": {change: all(off, always), want: "set one-time network boot, ask for power On"},
		"one that was powered off by what installs it": {
			change: all(off, ticket(func(t *model.Ticket) { t.IgnitionAt = time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC) })),
			want:   disk + ", ask for power On",
		},
		"a power cycle":                            {change: asks(model.OperationPowerCycle), want: disk + ", ask for power PowerCycle"},
		"a hard restart":                           {change: asks(model.OperationHardRestart), want: disk + ", ask for power ForceRestart"},
		"a graceful restart":                       {change: asks(model.OperationGracefulRestart), want: disk + ", ask for power GracefulRestart"},
		"a restart that is refused an override":    {change: all(asks(model.OperationPowerCycle), none(firmware)), want: "ask for power PowerCycle"},
		"a restart of what boots from the network": {change: all(asks(model.OperationPowerCycle), always), want: "ask for power PowerCycle"},
		"a restart while it is being installed": {
			change: all(asks(model.OperationPowerCycle), ticket(func(t *model.Ticket) { t.IgnitionAt = time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC) })),
			want:   disk + ", ask for power PowerCycle",
		},
		"a restart while its install waits for it to be off": {
			change: all(asks(model.OperationPowerCycle), ticket(func(t *model.Ticket) { t.AwaitingOff = true })),
			want:   disk + ", ask for power PowerCycle",
		},
		"a restart of what has yet to be installed asks for none": {
			change: all(asks(model.OperationPowerCycle), ticket(func(*model.Ticket) {})), want: "ask for power PowerCycle",
		},
		"a power-on":                             {change: all(off, asks(model.OperationForceOn)), want: disk + ", ask for power On"},
		"a power-on of what is on asks for none": {change: asks(model.OperationForceOn), want: "ask for power On"},
		"a forced power-off asks for none":       {change: asks(model.OperationForceOff), want: "ask for power ForceOff"},
		"a power-on of what was released and retained": {
			change: all(off, asks(model.OperationForceOn), state(model.StateReleased)), want: disk + ", ask for power On",
		},
		"a power-on of what has no claim asks for none": {
			change: all(off, asks(model.OperationForceOn), state(model.StateAvailable)), want: "ask for power On",
		},
		"a power-on of what was wiped in vain asks for none": {
			change: all(off, asks(model.OperationForceOn), state(model.StateError), func(_ *input, rec *record) { rec.Life.Back = model.StateCleanup }),
			want:   "ask for power On",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers["bmc00000-system-0"]
			in.Observed.BMCFacts[rec.BMC].FirmwareVersion = firmware
			tc.change(in, rec)
			m := plan.Plan(in).Moves[rec.Name]
			if m == nil {
				t.Fatal("nothing is done")
			}
			if got := strings.ReplaceAll(moveText(m), ", then ", ", "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

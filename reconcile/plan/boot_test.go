package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

func TestWhatStandsAgainstABoot(t *testing.T) {
	now := fleettest.Now
	waits := func(reason model.Reason, then string, actor proposal.Actor) proposal.Why {
		return proposal.Why{Reason: reason, Message: "no such tag; " + then + ", and it is tried again", Since: now, Actor: actor}
	}
	const arms, stays, runs = "arm boot ticket for os:1", "it is not powered on for that", "it keeps running what it has"
	arm64 := func(p model.Processor) change {
		return func(in *input, rec *record) {
			in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{Processors: []model.Processor{p}}
		}
	}
	until := func(t time.Time) change { return func(_ *input, rec *record) { rec.Boot.Problem.NotBefore = t } }
	later := until(now.Add(time.Minute))
	reprovisioned := func(in *input, rec *record) {
		rec.Install.Digest, rec.Install.Reprovision, rec.Requests.HandledReprovision = "sha256:old", "1", "1"
		annotated(model.AnnotationReprovision, "1")(in.Desired.Claims[rec.Claim.Name])
		in.Observed.ServerFacts[rec.Name].Power = model.PowerOn
	}
	noProblem := func(_ *input, rec *record) { rec.Boot.Problem = nil }
	for name, tc := range map[string]struct {
		change change
		want   proposal.Why // "" = it is armed
		do     string       // what is done
	}{
		"nothing is known against it":          {change: noProblem, do: arms},
		"a problem of it is waited out":        {change: later, want: waits("NotFound", stays, proposal.Tenant)},
		"the time for another attempt is come": {change: until(now), want: waits("NotFound", stays, proposal.Tenant), do: arms},
		"a problem of another boot is none":    {change: all(later, func(_ *input, rec *record) { rec.Boot.Problem.Digest = "sha256:other" }), do: arms},
		"nor is one of another architecture":   {change: all(later, arm64(model.Processor{Architecture: "ARM"})), do: arms},
		"an unreachable registry is the operator's": {
			change: all(later, func(_ *input, rec *record) { rec.Boot.Problem.Reason = "RegistryUnreachable" }),
			want:   waits("RegistryUnreachable", stays, proposal.RackOperator),
		},
		"a running server whose new image cannot be had": {change: all(reprovisioned, later), want: waits("NotFound", runs, proposal.Tenant)},
		"a running server whose new image may be had":    {change: all(reprovisioned, noProblem), do: arms},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := serving(off)
			rec.Install.Digest = ""
			rec.Boot.Problem = &model.BootProblem{
				Digest: booting.BootDigest(proposal.Boot{Image: "os:1"}), Architecture: "amd64", Image: "os:1",
				Reason: "NotFound", Message: "no such tag", Since: now,
			}
			tc.change(in, rec)
			st := stepOf(in, rec.Name)
			if diff := cmp.Diff(tc.want, st.Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
			if got := st.does(); got != tc.do {
				t.Errorf("does %q, want %q", got, tc.do)
			}
		})
	}
}

func TestWhatBootsFromDiskAsksForThat(t *testing.T) {
	const disk, firmware = "set one-time boot from disk", "1.0"
	asks := func(operation string, reset model.ResetKind) change {
		return func(in *input, rec *record) {
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(rec.Name), Annotations: map[string]string{model.AnnotationOperation: operation}}})
			rec.Requests.HandledOperation = operation
			rec.Requests.Operation = &model.Operation{Value: operation, Reset: reset, NotedAt: in.Now}
		}
	}
	cycle, forceOn := asks(model.OperationPowerCycle, model.ResetPowerCycle), asks(model.OperationForceOn, model.ResetOn)
	always := func(in *input, rec *record) {
		annotated(model.AnnotationBoot, "always")(in.Desired.Claims[rec.Claim.Name])
		rec.Boot.Ticket = &model.Ticket{ID: "t", Claim: rec.Claim.Name, Purpose: model.PurposeClaim, Always: true, Ended: model.TicketBooted}
	}
	ticket := ticket(model.PurposeClaim)
	served := all(ticket, served(time.Minute))
	none := func(of string) change {
		return func(_ *input, rec *record) { rec.Boot.NoDiskBoot = &model.NoDiskBoot{Firmware: of} }
	}
	for name, tc := range map[string]struct {
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
		"one that was powered off by what installs it":    {change: all(off, served), want: disk + ", ask for power On"},
		"a power cycle":                                           {change: cycle, want: disk + ", ask for power PowerCycle"},
		"a hard restart":                                          {change: asks(model.OperationHardRestart, model.ResetForceRestart), want: disk + ", ask for power ForceRestart"},
		"a graceful restart":                                      {change: asks(model.OperationGracefulRestart, model.ResetGracefulRestart), want: disk + ", ask for power GracefulRestart"},
		"a restart that is refused an override":                   {change: all(cycle, none(firmware)), want: "ask for power PowerCycle"},
		"a restart of what boots from the network":                {change: all(cycle, always), want: "ask for power PowerCycle"},
		"a restart while it is being installed":                   {change: all(cycle, served), want: disk + ", ask for power PowerCycle"},
		"a restart while its install waits for it to be off":      {change: all(cycle, ticket, awaitingOff), want: disk + ", ask for power PowerCycle"},
		"a restart of what has yet to be installed asks for none": {change: all(cycle, ticket), want: "ask for power PowerCycle"},
		"a power-on":                                    {change: all(off, forceOn), want: disk + ", ask for power On"},
		"a power-on of what is on asks for none":        {change: forceOn, want: "ask for power On"},
		"a forced power-off asks for none":              {change: asks(model.OperationForceOff, model.ResetForceOff), want: "ask for power ForceOff"},
		"a power-on of what was released and retained":  {change: all(off, forceOn, state(model.StateReleased)), want: disk + ", ask for power On"},
		"a power-on of what has no claim asks for none": {change: all(off, forceOn, state(model.StateAvailable)), want: "ask for power On"},
		"a power-on of what was wiped in vain asks for none": {
			change: all(off, forceOn, state(model.StateError), func(_ *input, rec *record) { rec.Life.Back = model.StateCleanup }),
			want:   "ask for power On",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := serving(tc.change)
			in.Observed.BMCFacts[rec.BMC].FirmwareVersion = firmware
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

// Whatever form a digest on record has, no machine is touched for it.
func TestDigestsOnRecordAreRekeyed(t *testing.T) {
	plain, other := booting.BootDigest(proposal.Boot{Image: "os:1"}), booting.BootDigest(proposal.Boot{Image: "os:0"})
	digestsKey := model.NewDigestKey([]byte(strings.Repeat("d", 32)))
	lostKey := model.NewDigestKey([]byte(strings.Repeat("l", 32)))
	key := digestsKey.For("default")
	ours := key.Sum(plain)
	booted := func(rec *record, digest, image string) {
		rec.Install.Digest = digest
		rec.Boot.Ticket = &model.Ticket{
			ID: "t", Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Digest: digest,
			Image: model.PinnedImage{Ref: image}, Ended: model.TicketBooted,
		}
	}
	for name, tc := range map[string]struct {
		before   func(rec *record)
		want     string
		ticket   string
		outdated bool
	}{
		"one under a lost key":                   {before: func(rec *record) { booted(rec, lostKey.Sum(plain), "os:1") }, want: ours, ticket: ours},
		"one under a lost key, without a ticket": {before: func(rec *record) { rec.Install.Digest = lostKey.Sum(plain) }, want: ours},
		"one under a lost key, of another image": {
			before: func(rec *record) { booted(rec, lostKey.Sum(other), "os:0") },
			want:   lostKey.Sum(other), ticket: lostKey.Sum(other), outdated: true,
		},
		"one under our key": {before: func(rec *record) { booted(rec, ours, "os:1") }, want: ours, ticket: ours},
		"one under our key, of something else": {
			before: func(rec *record) { booted(rec, key.Sum(other), "os:0") }, want: key.Sum(other), ticket: key.Sum(other), outdated: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := serving()
			in.DigestKey = digestsKey
			tc.before(rec)
			isOutdated := func() bool { return plan.Plan(in).Servers[0].Pending != nil }
			if got := isOutdated(); got != tc.outdated {
				t.Errorf("before: outdated = %t", got)
			}
			for range 3 {
				for _, m := range plan.Plan(in).Moves {
					if len(m.Do) > 0 {
						t.Fatalf("the machine is touched: %+v", m.Do)
					}
					in.Observed.Servers[rec.Name] = m.Then
				}
			}
			got, ticket := in.Observed.Servers[rec.Name], ""
			if got.Boot.Ticket != nil {
				ticket = got.Boot.Ticket.Digest
			}
			if got.Install.Digest != tc.want || ticket != tc.ticket || isOutdated() != tc.outdated {
				t.Errorf("installed %s, ticket %s, outdated %t; want %s, %s, %t", got.Install.Digest, ticket, isOutdated(), tc.want, tc.ticket, tc.outdated)
			}
			for _, m := range plan.Plan(in).Moves {
				t.Errorf("it goes on: %+v", m)
			}
		})
	}
}

package plan_test

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

func TestWhatMakesAClaimBooted(t *testing.T) {
	const grace = 30 * time.Minute
	served := func(ago time.Duration) change {
		return func(in *input, rec *record) { rec.Boot.Ticket.IgnitionAt = in.Now.Add(-ago) }
	}
	annotated := func(value string) change {
		return func(in *input, rec *record) {
			in.Desired.Claims[rec.Claim.Name].Annotations = map[string]string{model.AnnotationBooted: value}
			rec.Boot.Ticket.BootedBy = value
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t"}
			rec.Power.Asked.At = in.Now.Add(-2 * grace)
		}
	}
	long := all(annotated("served"), served(2*grace))
	asked := func(u model.TicketUse, ago time.Duration) change {
		return func(in *input, rec *record) {
			u.Last = in.Now.Add(-ago)
			p := *in.Observed.Progress[rec.Name]
			p.Uses = append(p.Uses, u)
			in.Observed.Progress[rec.Name] = &p
		}
	}
	replay := model.TicketUse{What: model.ThingScript, Client: "192.0.2.9", Refusal: model.RefusedReplay}
	reported := func(in *input, rec *record) {
		in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
	}
	kernel := func(ago time.Duration) change {
		return progressed(model.Progress{ScriptAt: fleettest.Now.Add(-ago), KernelAt: fleettest.Now.Add(-ago)})
	}
	unconfirmed := func(in *input, rec *record) {
		rec.Install.Digest, rec.Install.Unconfirmed = rec.Boot.Ticket.Digest, in.Now.Add(-time.Hour)
	}
	poweredOn := func(ago time.Duration) change {
		return func(in *input, rec *record) { rec.Power.Asked.At = in.Now.Add(-ago) }
	}
	const booted, waits = "Booted", "waits"
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"its report":                            {changes: []change{served(time.Minute), reported}, want: booted},
		"no time alone":                         {changes: []change{served(grace)}, want: model.ReasonUnconfirmed},
		"it is waited for before":               {changes: []change{served(grace - time.Minute)}, want: waits},
		"a late report":                         {changes: []change{served(2 * grace), unconfirmed, reported}, want: booted},
		"nothing more once it is Unconfirmed":   {changes: []change{served(24 * time.Hour), unconfirmed}, want: model.ReasonUnconfirmed},
		"being served, where the claim says so": {changes: []change{annotated("served"), served(grace)}, want: booted},
		"and not before":                        {changes: []change{annotated("served"), served(grace - time.Minute)}, want: waits},
		"the annotation may come late":          {changes: []change{long, unconfirmed}, want: booted},
		"not while it is off":                   {changes: []change{long, unconfirmed, off}, want: model.ReasonUnconfirmed},
		"not while it asks for its script":      {changes: []change{long, asked(replay, time.Minute)}, want: model.ReasonUnconfirmed},
		"nor while its firmware asks DHCP": {
			changes: []change{long, asked(model.TicketUse{What: model.ThingBootFile, Refusal: model.RefusedReplay}, time.Minute)}, want: model.ReasonUnconfirmed,
		},
		"but 30 minutes after it asked last": {changes: []change{long, asked(replay, grace)}, want: booted},
		"who has another's address does not ask for it": {
			changes: []change{long, asked(model.TicketUse{What: model.ThingScript, Refusal: model.RefusedAddress}, time.Minute)}, want: booted,
		},
		"who is another server does not ask for it": {
			changes: []change{long, asked(model.TicketUse{What: model.ThingScript, Refusal: model.RefusedOther}, time.Minute)}, want: booted,
		},
		"nor does who reports": {
			changes: []change{long, asked(model.TicketUse{What: model.ThingBootState, Refusal: model.RefusedToken}, time.Minute)}, want: booted,
		},
		"not soon after a power-on": {changes: []change{long, unconfirmed, poweredOn(time.Minute)}, want: model.ReasonUnconfirmed},
		"not soon after what it asked for was lost": {changes: []change{long, unconfirmed, func(in *input, rec *record) {
			delete(in.Observed.Progress, rec.Name)
			in.Started = in.Now.Add(-time.Minute)
		}}, want: model.ReasonUnconfirmed},
		"its kernel, where the claim says so":            {changes: []change{annotated("kernel"), kernel(grace)}, want: booted},
		"not its kernel where it says that it is served": {changes: []change{annotated("served"), kernel(10 * time.Minute)}, want: waits},
		"a kernel that was fetched needs no longer be in time": {
			changes: []change{annotated("kernel"), kernel(20 * time.Minute), poweredOn(21 * time.Minute)}, want: waits,
		},
		"what yesterday's store has as Booted": {changes: []change{func(_ *input, rec *record) {
			rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
		}}, want: booted},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			all(tc.changes...)(in, rec)
			for range 4 { // a record is changed a step at a time
				st := stepOf(in, rec.Name)
				if st.Move == nil || st.does() != "" {
					break
				}
				in.Observed.Servers[rec.Name] = st.Move.Then
			}
			now := in.Observed.Servers[rec.Name]
			got := waits
			switch {
			case now.Install.Digest != "" && now.Install.Unconfirmed.IsZero():
				got = booted
			case now.Install.Digest != "":
				got = model.ReasonUnconfirmed
			}
			if got != tc.want {
				t.Errorf("the claim is %s, want %s; its server's record is %+v with ticket %+v", got, tc.want, now, now.Boot.Ticket)
			}
			if open := now.Boot.Ticket.Open(); open == (got == booted) {
				t.Errorf("the ticket takes a report: %t, while the claim is %s", open, got)
			}
			if p := in.Observed.Progress[rec.Name]; !now.Boot.Ticket.ServedAt(p).IsZero() && now.Boot.Ticket.MayBoot(p) {
				t.Error("its server may be booted from the network again")
			}
		})
	}
}

func TestWhenCloudInitIsSaidToHaveFailed(t *testing.T) {
	const failed = "stage modules-final, module scripts_user: RuntimeError"
	for title, tc := range map[string]struct {
		change func(in *input, rec *record, b *model.BootState)
		says   string // "" = nothing
	}{
		"once it said so":            {func(*input, *record, *model.BootState) {}, "(" + failed + "): "},
		"with how much else":         {func(_ *input, _ *record, b *model.BootState) { b.CloudInit.ErrorsMore = 4 }, failed + "; and 4 more)"},
		"not where it said nothing":  {func(_ *input, _ *record, b *model.BootState) { b.CloudInit = nil }, ""},
		"not where it ended well":    {func(_ *input, _ *record, b *model.BootState) { b.CloudInit.Errors = nil }, ""},
		"not of an install before":   {func(_ *input, _ *record, b *model.BootState) { b.Ticket = "t0" }, ""},
		"not of another claim":       {func(_ *input, rec *record, _ *model.BootState) { rec.Boot.Ticket.Claim = "default/other" }, ""},
		"not once its claim is gone": {func(in *input, rec *record, _ *model.BootState) { delete(in.Desired.Claims, rec.Claim.Name) }, ""},
	} {
		in, rec := ticketed(model.StateReserved, model.PurposeClaim)
		rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
		b := &model.BootState{Ticket: "t", ReceivedAt: in.Now, CloudInit: &model.CloudInitResult{ReceivedAt: in.Now, Errors: []string{failed}}}
		in.Observed.BootStates[rec.Name] = b
		tc.change(in, rec, b)
		got := plan.Plan(in).Servers[0]
		switch {
		case tc.says == "" && got.CloudInit != nil:
			t.Errorf("%s: %s", title, got.CloudInit.Text())
		case tc.says != "" && (got.CloudInit == nil || !strings.Contains(got.CloudInit.Text(), tc.says) || got.CloudInit.Actor != proposal.Tenant):
			t.Errorf("%s: got %+v, want %q", title, got.CloudInit, tc.says)
		}
		if got.Claim != nil && got.Record.Life.State != model.StateReserved {
			t.Errorf("%s: its server is %s", title, got.Record.Life.State)
		}
	}
}

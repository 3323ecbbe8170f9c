package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

func TestWhatMakesAClaimBooted(t *testing.T) {
	const grace = 30 * time.Minute
	served := func(ago time.Duration) func(in *Input, rec *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) { rec.Ticket.IgnitionAt = in.Now.Add(-ago) }
	}
	annotated := func(value string) func(in *Input, rec *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			in.Desired.Claims[rec.Claim].Annotations = map[string]string{model.AnnotationBooted: value}
			rec.Ticket.BootedBy = value
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t"}
			rec.Asked.At = in.Now.Add(-2 * grace)
		}
	}
	asked := func(u model.TicketUse, ago time.Duration) func(in *Input, rec *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			u.Last = in.Now.Add(-ago)
			p := *in.Observed.Progress[rec.Name]
			p.Uses = append(p.Uses, u)
			in.Observed.Progress[rec.Name] = &p
		}
	}
	replay := model.TicketUse{What: model.ThingScript, Client: "192.0.2.9", Refusal: model.RefusedReplay}
	reported := func(in *Input, rec *model.ServerRecord) {
		in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
	}
	kernel := func(ago time.Duration) func(in *Input, rec *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now.Add(-ago), KernelAt: in.Now.Add(-ago)}
		}
	}
	off := func(in *Input, rec *model.ServerRecord) {
		in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
	}
	unconfirmed := func(in *Input, rec *model.ServerRecord) {
		rec.Installed, rec.Unconfirmed = rec.Ticket.Digest, in.Now.Add(-time.Hour)
	}
	const booted, waits = "Booted", "waits"
	type change = func(in *Input, rec *model.ServerRecord)
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"its report":                                    {[]change{served(time.Minute), reported}, booted},
		"no time alone":                                 {[]change{served(grace)}, Unconfirmed},
		"it is waited for before":                       {[]change{served(grace - time.Minute)}, waits},
		"a late report":                                 {[]change{served(2 * grace), unconfirmed, reported}, booted},
		"nothing more once it is Unconfirmed":           {[]change{served(24 * time.Hour), unconfirmed}, Unconfirmed},
		"being served, where the claim says so":         {[]change{annotated("served"), served(grace)}, booted},
		"and not before":                                {[]change{annotated("served"), served(grace - time.Minute)}, waits},
		"the annotation may come late":                  {[]change{annotated("served"), served(2 * grace), unconfirmed}, booted},
		"not while it is off":                           {[]change{annotated("served"), served(2 * grace), unconfirmed, off}, Unconfirmed},
		"not while it asks for its script":              {[]change{annotated("served"), served(2 * grace), asked(replay, time.Minute)}, Unconfirmed},
		"nor while its firmware asks DHCP":              {[]change{annotated("served"), served(2 * grace), asked(model.TicketUse{What: model.ThingBootFile, Refusal: model.RefusedReplay}, time.Minute)}, Unconfirmed},
		"but 30 minutes after it asked last":            {[]change{annotated("served"), served(2 * grace), asked(replay, grace)}, booted},
		"who has another's address does not ask for it": {[]change{annotated("served"), served(2 * grace), asked(model.TicketUse{What: model.ThingScript, Refusal: model.RefusedAddress}, time.Minute)}, booted},
		"who is another server does not ask for it":     {[]change{annotated("served"), served(2 * grace), asked(model.TicketUse{What: model.ThingScript, Refusal: model.RefusedOther}, time.Minute)}, booted},
		"nor does who reports":                          {[]change{annotated("served"), served(2 * grace), asked(model.TicketUse{What: model.ThingBootState, Refusal: model.RefusedToken}, time.Minute)}, booted},
		"not soon after a power-on":                     {[]change{annotated("served"), served(2 * grace), unconfirmed, func(in *Input, rec *model.ServerRecord) { rec.Asked.At = in.Now.Add(-time.Minute) }}, Unconfirmed},
		"not soon after what it asked for was lost": {[]change{annotated("served"), served(2 * grace), unconfirmed, func(in *Input, rec *model.ServerRecord) {
			delete(in.Observed.Progress, rec.Name)
			in.Started = in.Now.Add(-time.Minute)
		}}, Unconfirmed},
		"its kernel, where the claim says so":                  {[]change{annotated("kernel"), kernel(grace)}, booted},
		"not its kernel where it says that it is served":       {[]change{annotated("served"), kernel(10 * time.Minute)}, waits},
		"a kernel that was fetched needs no longer be in time": {[]change{annotated("kernel"), kernel(20 * time.Minute), func(in *Input, rec *model.ServerRecord) { rec.Asked.At = in.Now.Add(-21 * time.Minute) }}, waits},
		"what yesterday's store has as Booted": {[]change{func(_ *Input, rec *model.ServerRecord) {
			rec.Installed, rec.Ticket.Ended = rec.Ticket.Digest, model.TicketBooted
		}}, booted},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			for _, c := range tc.changes {
				c(in, rec)
			}
			for range 4 { // a record is changed a step at a time
				s := newFleet(in).byName[rec.Name]
				st := s.step()
				if st.Move == nil || done(st) != "" {
					break
				}
				in.Observed.Servers[rec.Name] = st.Move.Then
			}
			now := in.Observed.Servers[rec.Name]
			got := waits
			switch {
			case now.Installed != "" && now.Unconfirmed.IsZero():
				got = booted
			case now.Installed != "":
				got = Unconfirmed
			}
			if got != tc.want {
				t.Errorf("the claim is %s, want %s; its server's record is %+v with ticket %+v", got, tc.want, now, now.Ticket)
			}
			if open := now.Ticket.Open(); open == (got == booted) {
				t.Errorf("the ticket takes a report: %t, while the claim is %s", open, got)
			}
			if p := in.Observed.Progress[rec.Name]; !now.Ticket.ServedAt(p).IsZero() && now.Ticket.MayBoot(p) {
				t.Error("its server may be booted from the network again")
			}
		})
	}
}

// A server that says nothing runs on: it is not switched off, installed anew or handed on
// but by a commit, and starts from its disk.
func TestTheLifeOfAServerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.change(0, func(m *machine) { m.noNotice = true })
		w.start()
		defer func() { w.stop() }()
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if why := w.why(0); why != WaitingForBoot {
			t.Errorf("before its time is over it waits for %s", why)
		}
		w.expect(30*time.Minute, 0, "Reserved On default/web")
		if why := w.why(0); why != Unconfirmed {
			t.Errorf("it is %s, want %s", why, Unconfirmed)
		}
		before := w.seen(0)
		w.expect(48*time.Hour, 0, "Reserved On default/web")
		w.stop()
		w.start()
		w.expect(time.Hour, 0, "Reserved On default/web")
		if now := w.seen(0); now.ons != before.ons || now.offs != before.offs || now.installs != 1 {
			t.Errorf("it was switched on %d times, off %d times and installed %d times; before %d, %d and 1", now.ons, now.offs, now.installs, before.ons, before.offs)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		now := w.seen(0)
		if last := now.boots[len(now.boots)-1]; !strings.HasPrefix(last, "disk sha256") || now.installs != 1 {
			t.Errorf("after a power cut it boots from %s, and was installed %d times", last, now.installs)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(30*time.Minute, 0, "Available Off")
		if rec := w.Observed().Servers[w.machine(0).name]; !rec.Unconfirmed.IsZero() {
			t.Errorf("a server that is free is still Unconfirmed: %+v", rec)
		}
	})
}

func TestAClaimThatIsUnconfirmedIsNotReady(t *testing.T) {
	in, rec := ticketed(model.StateReserved, model.PurposeClaim)
	rec.Installed, rec.Unconfirmed, rec.Ticket.IgnitionAt = rec.Ticket.Digest, in.Now, in.Now.Add(-time.Hour)
	conds := claimConditionsOf(in, rec.Claim)
	for _, kind := range []string{"Ready", Unconfirmed} {
		if got := conditionOf(conds, kind); !strings.Contains(got, "Unconfirmed") || !strings.Contains(got, "ingot/booted: served, or kernel") {
			t.Errorf("condition %s is %s", kind, got)
		}
	}
}

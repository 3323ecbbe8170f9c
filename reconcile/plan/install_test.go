package plan_test

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

func TestTheStagesOfAnInstall(t *testing.T) {
	another := func(_ *input, rec *record) { rec.Boot.Ticket.Digest = fleettest.DigestOf("os:2") }
	absent := func(in *input, _ *record) { in.Serving = in.Now.Add(-10 * time.Minute) }
	before := func(_ *input, rec *record) {
		rec.Boot.Ticket.ArmedAt, rec.Power.Asked.At = rec.Boot.Ticket.ArmedAt.Add(-12*time.Minute), rec.Power.Asked.At.Add(-12*time.Minute)
	}
	noSecret := func(in *input, rec *record) {
		in.Desired.Claims[rec.Claim.Name].Spec.IgnitionSecretRef = &model.LocalRef{Name: "none"}
	}
	otherKeys := func(_ *input, rec *record) { rec.Boot.Ticket.SSHKeys = model.SSHKeysSum("ssh-ed25519 AAAA") }
	notBegun := func(_ *input, rec *record) { rec.Power.Asked = nil }
	for name, tc := range map[string]struct {
		changes []change
		want    install.Stage
	}{
		"it is off and its claim has other SSH keys":  {changes: []change{off, notBegun, otherKeys}, want: install.ToArm},
		"it is on and its claim has other SSH keys":   {changes: []change{otherKeys}, want: install.Booting},
		"it is on and was not served":                 {changes: nil, want: install.Booting},
		"it is off and was not served":                {changes: []change{off}, want: install.Ready},
		"the server may still run another's":          {changes: []change{awaitingOff}, want: install.AwaitingOff},
		"what still ran was served, and has reported": {changes: []change{awaitingOff, fetched, reported}, want: install.UsedEarly},
		"served, which is not on record":              {changes: []change{fetched}, want: install.Served},
		"served":                                      {changes: []change{served(time.Minute)}, want: install.Installing},
		"served, and off":                             {changes: []change{served(time.Minute), off}, want: install.PoweredOff},
		"served, and its time is over":                {changes: []change{served(30 * time.Minute)}, want: install.Unreported},
		"it has reported":                             {changes: []change{served(time.Minute), reported}, want: install.Booted},
		"it has reported and nothing served it":       {changes: []change{reported}, want: install.Booted},
		"it asked while no Ingot answered":            {changes: []change{before, absent}, want: install.Stranded},
		"its claim's Secret is missing":               {changes: []change{noSecret}, want: install.SecretMissing},
		"its claim asks for another image":            {changes: []change{another}, want: install.ToArm},
		"its ticket is another claim's":               {changes: []change{func(_ *input, rec *record) { rec.Boot.Ticket.Claim = "default/other" }}, want: install.ToArm},
		"it has no ticket":                            {changes: []change{func(_ *input, rec *record) { rec.Boot.Ticket = nil }}, want: install.ToArm},
		"it is installed":                             {changes: []change{func(_ *input, rec *record) { rec.Install.Digest = rec.Boot.Ticket.Digest }}, want: install.None},
		"its claim wants it off":                      {changes: []change{func(_ *input, rec *record) { rec.Claim.Power = model.PowerOff }}, want: install.None},
		"its claim is gone":                           {changes: []change{func(in *input, rec *record) { delete(in.Desired.Claims, rec.Claim.Name) }}, want: install.None},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			all(tc.changes...)(in, rec)
			if got := plan.Plan(in).Servers[0].Stage; got != tc.want {
				t.Errorf("the stage is %q, want %q", got, tc.want)
			}
		})
	}
}

// behindAnInstall is a fleet that may have one disk image written at a time: the record that is
// returned is of the server which that is done to, and the second one, which change is of, is to
// be installed, too.
func behindAnInstall(change func(r *record)) (*input, *record) {
	in := bigFleet(2, 2)
	in.Policy.ShowFirst, in.Policy.MaxConcurrentInstalls = false, 1
	rec := fleettest.Ticketed(in.Observed, model.StateReserved, model.PurposeClaim)
	rec.Boot.Ticket.Disk = &model.DiskImage{Ref: "os:1"}
	fleettest.ChangeRecord(in.Observed, 1, func(r *record) {
		ticket := *rec.Boot.Ticket
		ticket.ID, ticket.Server, ticket.Claim = "u", r.Name, r.Claim.Name
		r.Boot.Ticket, r.Install.Digest, r.Power.Asked = &ticket, "", nil
		change(r)
	})
	return in, rec
}

func TestAnInstallFromADiskImageTakesAPlace(t *testing.T) {
	told := func(change func(d *model.DiskInstall)) func(*input, *record) {
		return func(in *input, rec *record) {
			d := model.DiskInstall{Stage: model.DiskWriting, StartedAt: in.Now, ReportedAt: in.Now}
			change(&d)
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: rec.Boot.Ticket.ID, Install: &d}
		}
	}
	for name, tc := range map[string]struct {
		change change
		takes  bool
	}{
		"it was powered on":                         {func(*input, *record) {}, true},
		"its probe writes":                          {told(func(*model.DiskInstall) {}), true},
		"its power failed meanwhile":                {all(told(func(*model.DiskInstall) {}), off, func(_ *input, rec *record) { rec.Power.Asked.Reached = true }), true},
		"it was verified, and word of that is lost": {func(in *input, rec *record) { rec.Boot.Ticket.IgnitionAt = in.Now }, false},
		"its disk is verified":                      {told(func(d *model.DiskInstall) { d.VerifiedAt = d.StartedAt }), false},
		"its probe has given up":                    {told(func(d *model.DiskInstall) { d.Reason = model.ReasonDiskBusy }), false},
		"its image is no disk":                      {func(_ *input, rec *record) { rec.Boot.Ticket.Disk = nil }, false},
		"it still runs something else":              {awaitingOff, false},
		"it is asked to power on":                   {all(off, asksOn), true},
		"that is being asked this very moment": {all(off, asksOn, func(in *input, rec *record) {
			in.Busy, in.Readings[rec.Name] = map[model.ServerName]bool{rec.Name: true}, reading.State{At: in.Now, Reached: true}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := behindAnInstall(func(*record) {})
			in.Observed.ServerFacts[fleettest.ServerName(1)].Power = model.PowerOff
			tc.change(in, rec)
			why := plan.Plan(in).Servers[1].Why
			if got := why.Reason == model.ReasonInstallsLimited; got != tc.takes {
				t.Errorf("the other server waits for its turn: %t, want %t (%+v)", got, tc.takes, why)
			}
		})
	}
}

// What goes on without a reprovision that waits for its turn would end its ticket, to be armed
// again and again.
func TestAReprovisionInDoubtWaitsWithOneTicket(t *testing.T) {
	waits := fleettest.ServerName(1)
	in, _ := behindAnInstall(func(r *record) {
		r.Boot.Ticket.AwaitingOff = true
		r.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Message: "its store was lost", Since: fleettest.Now.Add(-time.Hour)}
		r.Install.Reprovision, r.Requests.HandledReprovision = "2", "2"
	})
	annotated(model.AnnotationReprovision, "2")(in.Desired.Claims[in.Observed.Servers[waits].Claim.Name])
	var s *plan.Server
	for range 5 { // as the loop does while something is decided
		p := plan.Plan(in)
		s = p.Servers[1]
		if m := p.Moves[waits]; m != nil {
			in.Observed.Servers[waits] = m.Then
		}
	}
	if s.Why.Reason != model.ReasonInstallsLimited || !s.Record.Boot.Ticket.Open() || s.Record.Boot.Ticket.ID != "u" {
		t.Errorf("server %s waits for %+v, with ticket %+v", waits, s.Why, s.Record.Boot.Ticket)
	}
}

// asksOn has a server be asked to power on just now.
func asksOn(in *input, rec *record) {
	rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: in.Now}
}

func TestAProbeHasTimeToPowerItsMachineOff(t *testing.T) {
	told := fleettest.Now.Add(-time.Second)
	for name, tc := range map[string]struct{ read, want time.Time }{
		"before it said so, it is looked at soon after": {told.Add(-time.Minute), told.Add(2 * time.Second)},
		"in the very moment, too":                       {told, told.Add(2 * time.Second)},
		"and then again and again":                      {told.Add(3 * time.Second), told.Add(3*time.Second + 5*time.Second)},
	} {
		in, rec := ticketed(model.StateReserved, model.PurposeClaim)
		rec.Boot.Ticket.Disk, rec.Boot.Ticket.IgnitionAt, rec.Power.Asked.At = &model.DiskImage{Ref: "os:1"}, told, told.Add(-time.Minute)
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: rec.Boot.Ticket.ID, Install: &model.DiskInstall{RebootingAt: told, ReportedAt: told}}
		in.Readings[rec.Name] = reading.State{At: tc.read}
		if got := plan.Plan(in).Next; !got.Equal(tc.want) {
			t.Errorf("%s: %v after, want %v", name, got.Sub(told), tc.want.Sub(told))
		}
	}
}

func TestWhatMakesAClaimBooted(t *testing.T) {
	const grace = 30 * time.Minute
	annotated := func(value string) change {
		return func(in *input, rec *record) {
			in.Desired.Claims[rec.Claim.Name].Annotations = map[string]string{model.AnnotationBooted: value}
			rec.Boot.Ticket.BootedBy = value
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t"}
			rec.Power.Asked.At = in.Now.Add(-2 * grace)
		}
	}
	long := all(annotated("served"), served(2*grace))
	const script, replay = model.ThingScript, model.RefusedReplay
	asked := func(what model.TicketThing, refusal model.TicketRefusal, ago time.Duration) change {
		return progressed(model.Progress{Uses: []model.TicketUse{{What: what, Refusal: refusal, Last: fleettest.Now.Add(-ago)}}})
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
	const booted, waits, unknown = "Booted", "waits", model.ReasonUnconfirmed
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"its report":                                    {change: all(served(time.Minute), reported), want: booted},
		"no time alone":                                 {change: all(served(grace)), want: unknown},
		"it is waited for before":                       {change: all(served(grace - time.Minute)), want: waits},
		"a late report":                                 {change: all(served(2*grace), unconfirmed, reported), want: booted},
		"nothing more once it is Unconfirmed":           {change: all(served(24*time.Hour), unconfirmed), want: unknown},
		"being served, where the claim says so":         {change: all(annotated("served"), served(grace)), want: booted},
		"and not before":                                {change: all(annotated("served"), served(grace-time.Minute)), want: waits},
		"the annotation may come late":                  {change: all(long, unconfirmed), want: booted},
		"not while it is off":                           {change: all(long, unconfirmed, off), want: unknown},
		"not while it asks for its script":              {change: all(long, asked(script, replay, time.Minute)), want: unknown},
		"nor while its firmware asks DHCP":              {change: all(long, asked(model.ThingBootFile, replay, time.Minute)), want: unknown},
		"but 30 minutes after it asked last":            {change: all(long, asked(script, replay, grace)), want: booted},
		"who has another's address does not ask for it": {change: all(long, asked(script, model.RefusedAddress, time.Minute)), want: booted},
		"who is another server does not ask for it":     {change: all(long, asked(script, model.RefusedOther, time.Minute)), want: booted},
		"nor does who reports":                          {change: all(long, asked(model.ThingBootState, model.RefusedToken, time.Minute)), want: booted},
		"not soon after a power-on":                     {change: all(long, unconfirmed, poweredOn(time.Minute)), want: unknown},
		"not soon after what it asked for was lost": {change: all(long, unconfirmed, func(in *input, rec *record) {
			delete(in.Observed.Progress, rec.Name)
			in.Started = in.Now.Add(-time.Minute)
		}), want: unknown},
		"its kernel, where the claim says so":            {change: all(annotated("kernel"), kernel(grace)), want: booted},
		"not its kernel where it says that it is served": {change: all(annotated("served"), kernel(10*time.Minute)), want: waits},
		"a kernel that was fetched in time":              {change: all(annotated("kernel"), kernel(20*time.Minute), poweredOn(21*time.Minute)), want: waits},
		"what yesterday's store has as Booted": {change: all(func(_ *input, rec *record) {
			rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
		}), want: booted},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			all(tc.change)(in, rec)
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
				got = unknown
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

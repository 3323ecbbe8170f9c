package plan_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/reading"
)

func TestTheStagesOfAnInstall(t *testing.T) {
	served := func(ago time.Duration) change {
		return func(in *input, rec *record) { rec.Boot.Ticket.IgnitionAt = in.Now.Add(-ago) }
	}
	fetched := func(in *input, rec *record) {
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now, IgnitionAt: in.Now}
	}
	reported := func(in *input, rec *record) {
		in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
	}
	awaitingOff := func(_ *input, rec *record) { rec.Boot.Ticket.AwaitingOff = true }
	another := func(_ *input, rec *record) { rec.Boot.Ticket.Digest = fleettest.DigestOf("os:2") }
	absent := func(in *input, _ *record) { in.Serving = in.Now.Add(-10 * time.Minute) }
	before := func(_ *input, rec *record) {
		rec.Boot.Ticket.ArmedAt, rec.Power.Asked.At = rec.Boot.Ticket.ArmedAt.Add(-12*time.Minute), rec.Power.Asked.At.Add(-12*time.Minute)
	}
	noSecret := func(in *input, rec *record) {
		in.Desired.Claims[rec.Claim.Name].Spec.IgnitionSecretRef = &model.LocalRef{Name: "none"}
	}
	for name, tc := range map[string]struct {
		changes []change
		want    install.Stage
	}{
		"it is on and was not served":           {changes: nil, want: install.Booting},
		"it is off and was not served":          {changes: []change{off}, want: install.Ready},
		"the server may still run another's":    {changes: []change{awaitingOff}, want: install.AwaitingOff},
		"though it is off":                      {changes: []change{awaitingOff, off}, want: install.AwaitingOff},
		"what still ran was served":             {changes: []change{awaitingOff, fetched}, want: install.UsedEarly},
		"and reported":                          {changes: []change{awaitingOff, fetched, reported}, want: install.UsedEarly},
		"served, which is not on record":        {changes: []change{fetched}, want: install.Served},
		"even if it has reported":               {changes: []change{fetched, reported}, want: install.Served},
		"served":                                {changes: []change{served(time.Minute)}, want: install.Installing},
		"served, and off":                       {changes: []change{served(time.Minute), off}, want: install.PoweredOff},
		"served, and its time is over":          {changes: []change{served(30 * time.Minute)}, want: install.Unreported},
		"also while it is off":                  {changes: []change{served(30 * time.Minute), off}, want: install.Unreported},
		"it has reported":                       {changes: []change{served(time.Minute), reported}, want: install.Booted},
		"late":                                  {changes: []change{served(time.Hour), reported}, want: install.Booted},
		"it has reported and nothing served it": {changes: []change{reported}, want: install.Booted},
		"it asked while no Ingot answered":      {changes: []change{before, absent}, want: install.Stranded},
		"its claim's Secret is missing":         {changes: []change{noSecret}, want: install.SecretMissing},
		"which is no matter once it was served": {changes: []change{noSecret, served(time.Minute)}, want: install.Installing},
		"its claim asks for another image":      {changes: []change{another}, want: install.ToArm},
		"but not once it was served":            {changes: []change{another, served(time.Minute)}, want: install.Installing},
		"its ticket has ended":                  {changes: []change{func(_ *input, rec *record) { rec.Boot.Ticket.Ended = model.TicketSpent }}, want: install.ToArm},
		"its ticket is another claim's":         {changes: []change{func(_ *input, rec *record) { rec.Boot.Ticket.Claim = "default/other" }}, want: install.ToArm},
		"it has no ticket":                      {changes: []change{func(_ *input, rec *record) { rec.Boot.Ticket = nil }}, want: install.ToArm},
		"it is installed":                       {changes: []change{func(_ *input, rec *record) { rec.Install.Digest = rec.Boot.Ticket.Digest }}, want: install.None},
		"its claim wants it off":                {changes: []change{func(_ *input, rec *record) { rec.Claim.Power = model.PowerOff }}, want: install.None},
		"its claim is gone":                     {changes: []change{func(in *input, rec *record) { delete(in.Desired.Claims, rec.Claim.Name) }}, want: install.None},
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
		"it was powered on": {func(*input, *record) {}, true},
		"its probe writes":  {told(func(*model.DiskInstall) {}), true},
		"its power failed meanwhile": {func(in *input, rec *record) {
			told(func(*model.DiskInstall) {})(in, rec)
			off(in, rec)
			rec.Power.Asked.Reached = true
		}, true},
		"it was verified, and word of that is lost": {func(in *input, rec *record) { rec.Boot.Ticket.IgnitionAt = in.Now }, false},
		"its disk is verified":                      {told(func(d *model.DiskInstall) { d.VerifiedAt = d.StartedAt }), false},
		"its probe has given up":                    {told(func(d *model.DiskInstall) { d.Reason = model.ReasonDiskBusy }), false},
		"its image is no disk":                      {func(_ *input, rec *record) { rec.Boot.Ticket.Disk = nil }, false},
		"it still runs something else":              {func(_ *input, rec *record) { rec.Boot.Ticket.AwaitingOff = true }, false},
		"it is asked to power on":                   {func(in *input, rec *record) { off(in, rec); asksOn(in, rec) }, true},
		"that is being asked this very moment": {func(in *input, rec *record) {
			off(in, rec)
			asksOn(in, rec)
			in.Busy, in.Readings[rec.Name] = map[model.ServerName]bool{rec.Name: true}, reading.State{At: in.Now, Reached: true}
		}, true},
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
	c := *in.Desired.Claims[in.Observed.Servers[waits].Claim.Name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "2"}
	in.Desired.Add(&c)
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

package plan

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

func TestTheStagesOfAnInstall(t *testing.T) {
	type change = func(in *Input, rec *model.ServerRecord)
	served := func(ago time.Duration) change {
		return func(in *Input, rec *model.ServerRecord) { rec.Boot.Ticket.IgnitionAt = in.Now.Add(-ago) }
	}
	fetched := func(in *Input, rec *model.ServerRecord) {
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now, IgnitionAt: in.Now}
	}
	reported := func(in *Input, rec *model.ServerRecord) {
		in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
	}
	awaitingOff := func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.AwaitingOff = true }
	another := func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.Digest = fleettest.DigestOf("os:2") }
	off := func(in *Input, rec *model.ServerRecord) { in.Observed.ServerFacts[rec.Name].Power = model.PowerOff }
	absent := func(in *Input, _ *model.ServerRecord) { in.Serving = in.Now.Add(-10 * time.Minute) }
	before := func(_ *Input, rec *model.ServerRecord) {
		rec.Boot.Ticket.ArmedAt, rec.Power.Asked.At = rec.Boot.Ticket.ArmedAt.Add(-12*time.Minute), rec.Power.Asked.At.Add(-12*time.Minute)
	}
	noSecret := func(in *Input, rec *model.ServerRecord) {
		in.Desired.Claims[rec.Claim.Name].Spec.IgnitionSecretRef = &model.LocalRef{Name: "none"}
	}
	tests := map[string]struct {
		changes []change
		want    InstallStage
	}{
		"it is on and was not served":           {changes: nil, want: InstallBooting},
		"it is off and was not served":          {changes: []change{off}, want: InstallReady},
		"the server may still run another's":    {changes: []change{awaitingOff}, want: InstallAwaitingOff},
		"though it is off":                      {changes: []change{awaitingOff, off}, want: InstallAwaitingOff},
		"what still ran was served":             {changes: []change{awaitingOff, fetched}, want: InstallUsedEarly},
		"and reported":                          {changes: []change{awaitingOff, fetched, reported}, want: InstallUsedEarly},
		"served, which is not on record":        {changes: []change{fetched}, want: InstallServed},
		"even if it has reported":               {changes: []change{fetched, reported}, want: InstallServed},
		"served":                                {changes: []change{served(time.Minute)}, want: InstallInstalling},
		"served, and off":                       {changes: []change{served(time.Minute), off}, want: InstallPoweredOff},
		"served, and its time is over":          {changes: []change{served(30 * time.Minute)}, want: InstallUnreported},
		"also while it is off":                  {changes: []change{served(30 * time.Minute), off}, want: InstallUnreported},
		"it has reported":                       {changes: []change{served(time.Minute), reported}, want: InstallBooted},
		"late":                                  {changes: []change{served(time.Hour), reported}, want: InstallBooted},
		"it has reported and nothing served it": {changes: []change{reported}, want: InstallBooted},
		"it asked while no Ingot answered":      {changes: []change{before, absent}, want: InstallStranded},
		"its claim's Secret is missing":         {changes: []change{noSecret}, want: InstallSecretMissing},
		"which is no matter once it was served": {changes: []change{noSecret, served(time.Minute)}, want: InstallInstalling},
		"its claim asks for another image":      {changes: []change{another}, want: InstallToArm},
		"but not once it was served":            {changes: []change{another, served(time.Minute)}, want: InstallInstalling},
		"its ticket has ended": {
			changes: []change{func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.Ended = model.TicketSpent }}, want: InstallToArm,
		},
		"its ticket is another claim's": {
			changes: []change{func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.Claim = "default/other" }}, want: InstallToArm,
		},
		"it has no ticket": {
			changes: []change{func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket = nil }}, want: InstallToArm,
		},
		"it is installed": {
			changes: []change{func(_ *Input, rec *model.ServerRecord) { rec.Install.Digest = rec.Boot.Ticket.Digest }}, want: InstallNone,
		},
		"its claim wants it off": {
			changes: []change{func(_ *Input, rec *model.ServerRecord) { rec.Claim.Power = model.PowerOff }}, want: InstallNone,
		},
		"its claim is gone": {
			changes: []change{func(in *Input, rec *model.ServerRecord) { delete(in.Desired.Claims, rec.Claim.Name) }}, want: InstallNone,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateReserved, model.PurposeClaim)
			for _, c := range tc.changes {
				c(in, rec)
			}
			if got := Plan(in).Servers[0].Stage; got != tc.want {
				t.Errorf("the stage is %q, want %q", got, tc.want)
			}
		})
	}
}

// behindAnInstall is a fleet that may have one disk image written at a time: the record that is
// returned is of the server which that is done to, and the second one, which change is of, is to
// be installed, too.
func behindAnInstall(change func(r *model.ServerRecord)) (*Input, *model.ServerRecord) {
	in := bigFleet(2, 2)
	in.Policy.ShowFirst, in.Policy.MaxConcurrentInstalls = false, 1
	rec := fleettest.Ticketed(in.Observed, model.StateReserved, model.PurposeClaim)
	rec.Boot.Ticket.Disk = &model.DiskImage{Ref: "os:1"}
	fleettest.ChangeRecord(in.Observed, 1, func(r *model.ServerRecord) {
		ticket := *rec.Boot.Ticket
		ticket.ID, ticket.Server, ticket.Claim = "u", r.Name, r.Claim.Name
		r.Boot.Ticket, r.Install.Digest, r.Power.Asked = &ticket, "", nil
		change(r)
	})
	return in, rec
}

func TestAnInstallFromADiskImageTakesAPlace(t *testing.T) {
	told := func(change func(d *model.DiskInstall)) func(*Input, *model.ServerRecord) {
		return func(in *Input, rec *model.ServerRecord) {
			d := model.DiskInstall{Stage: model.DiskWriting, StartedAt: in.Now, ReportedAt: in.Now}
			change(&d)
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: rec.Boot.Ticket.ID, Install: &d}
		}
	}
	off := func(in *Input, rec *model.ServerRecord) { in.Observed.ServerFacts[rec.Name].Power = model.PowerOff }
	for name, tc := range map[string]struct {
		change func(in *Input, rec *model.ServerRecord)
		takes  bool
	}{
		"it was powered on": {func(*Input, *model.ServerRecord) {}, true},
		"its probe writes":  {told(func(*model.DiskInstall) {}), true},
		"its power failed meanwhile": {func(in *Input, rec *model.ServerRecord) {
			told(func(*model.DiskInstall) {})(in, rec)
			off(in, rec)
			rec.Power.Asked.Reached = true
		}, true},
		"it was verified, and word of that is lost": {func(in *Input, rec *model.ServerRecord) { rec.Boot.Ticket.IgnitionAt = in.Now }, false},
		"its disk is verified":                      {told(func(d *model.DiskInstall) { d.VerifiedAt = d.StartedAt }), false},
		"its probe has given up":                    {told(func(d *model.DiskInstall) { d.Reason = model.ReasonDiskBusy }), false},
		"its image is no disk":                      {func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.Disk = nil }, false},
		"it still runs something else":              {func(_ *Input, rec *model.ServerRecord) { rec.Boot.Ticket.AwaitingOff = true }, false},
		"it is asked to power on":                   {func(in *Input, rec *model.ServerRecord) { off(in, rec); asksOn(in, rec) }, true},
		"that is being asked this very moment": {func(in *Input, rec *model.ServerRecord) {
			off(in, rec)
			asksOn(in, rec)
			in.Busy, in.Readings[rec.Name] = map[model.ServerName]bool{rec.Name: true}, proposal.Reading{At: in.Now, Reached: true}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := behindAnInstall(func(*model.ServerRecord) {})
			in.Observed.ServerFacts[fleettest.ServerName(1)].Power = model.PowerOff
			tc.change(in, rec)
			why := Plan(in).Servers[1].Why
			if got := why.Reason == model.ReasonInstallsLimited; got != tc.takes {
				t.Errorf("the other server waits for its turn: %t, want %t (%+v)", got, tc.takes, why)
			}
		})
	}
}

// What goes on without a reprovision that waits for its turn would end its ticket, to be armed
// again and again.
func TestAReprovisionInDoubtWaitsForItsTurnWithOneTicket(t *testing.T) {
	waits := fleettest.ServerName(1)
	in, _ := behindAnInstall(func(r *model.ServerRecord) {
		r.Boot.Ticket.AwaitingOff = true
		r.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Message: "its store was lost", Since: fleettest.Now.Add(-time.Hour)}
		r.Install.Reprovision, r.Requests.HandledReprovision = "2", "2"
	})
	c := *in.Desired.Claims[in.Observed.Servers[waits].Claim.Name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "2"}
	in.Desired.Add(&c)
	var s *Server
	for range 5 { // as the loop does while something is decided
		p := Plan(in)
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
func asksOn(in *Input, rec *model.ServerRecord) {
	rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: in.Now}
}

func TestAProbeThatPowersItsMachineOffIsGivenTheTimeForIt(t *testing.T) {
	told := fleettest.Now.Add(-time.Second)
	for name, tc := range map[string]struct{ read, want time.Time }{
		"before it said so, it is looked at soon after": {told.Add(-time.Minute), told.Add(probeOffFirst)},
		"in the very moment, too":                       {told, told.Add(probeOffFirst)},
		"and then again and again":                      {told.Add(3 * time.Second), told.Add(3*time.Second + probeOffEvery)},
	} {
		in, rec := ticketed(model.StateReserved, model.PurposeClaim)
		rec.Boot.Ticket.Disk, rec.Power.Asked.At = &model.DiskImage{Ref: "os:1"}, told.Add(-time.Minute)
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: rec.Boot.Ticket.ID, Install: &model.DiskInstall{RebootingAt: told, ReportedAt: told}}
		in.Readings[rec.Name] = proposal.Reading{At: tc.read}
		if got := newFleet(in).servers[0].probeGoesOff(); !got.Equal(tc.want) {
			t.Errorf("%s: %v after, want %v", name, got.Sub(told), tc.want.Sub(told))
		}
	}
}

package plan

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

func TestWhichTicketsAreStolen(t *testing.T) {
	const served, replay = model.TicketRefusal(""), model.RefusedReplay
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	own := func(what model.TicketThing, r model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{
			What: what, Client: "192.0.2.1", MAC: "02:00:00:00:00:01", Own: true, Refusal: r, First: at(minute), Last: at(minute),
		}
	}
	thief := func(what model.TicketThing, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.66", MAC: "02:00:00:00:00:66", First: at(minute), Last: at(minute)}
	}
	unknown := func(what model.TicketThing, r model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.9", Refusal: r, First: at(minute), Last: at(minute)}
	}
	script, ignition, cloud := model.ThingScript, model.ThingIgnition, model.ThingCloudInit
	image, file := model.ThingImage, model.ThingBootFile
	full := make([]model.TicketUse, model.MaxTicketUses-2)
	for i := range full {
		full[i] = own(model.ThingReport, model.RefusedToken, i)
	}
	for name, tc := range map[string]struct {
		uses   []model.TicketUse
		config model.TicketThing
		want   bool
	}{
		"its server asks after another machine was given its Ignition": {
			uses: []model.TicketUse{thief(script, 1), thief(ignition, 2), own(script, replay, 3)},
			want: true,
		},
		"its firmware asks DHCP": {
			uses: []model.TicketUse{thief(ignition, 2), own(file, replay, 3)},
			want: true,
		},
		"cloud-init data are Ignition": {
			uses: []model.TicketUse{thief(cloud, 2), own(script, replay, 3)},
			want: true,
		},
		"a script is, where it is all that there is": {
			uses: []model.TicketUse{thief(script, 2), own(script, replay, 3)}, config: model.ThingScript,
			want: true,
		},
		"and only there": {uses: []model.TicketUse{thief(script, 2), own(script, replay, 3)}},
		"nobody but its server took it": {
			uses: []model.TicketUse{own(script, served, 1), own(ignition, served, 2), own(script, replay, 9)},
		},
		"its server asked before":  {uses: []model.TicketUse{own(script, replay, 1), thief(ignition, 2)}},
		"its server has not asked": {uses: []model.TicketUse{thief(script, 1), thief(ignition, 2)}},
		"somebody asks who may be anybody": {
			uses: []model.TicketUse{thief(ignition, 2), unknown(script, replay, 3)},
		},
		"another machine asks": {
			uses: []model.TicketUse{thief(ignition, 2), {What: script, MAC: "02:00:00:00:00:77", Refusal: replay, Last: at(3)}},
		},
		"it was given to a machine that may be its server, at another address": {
			uses: []model.TicketUse{unknown(ignition, served, 2), own(script, replay, 3)},
		},
		"its server was given it, too": {
			uses: []model.TicketUse{thief(ignition, 2), own(ignition, served, 3), own(script, replay, 9)},
		},
		"its server was given its script, and may go on with that": {
			uses: []model.TicketUse{own(script, served, 1), thief(ignition, 2), own(script, replay, 9)},
		},
		"its server was given its kernel": {
			uses: []model.TicketUse{own(image, served, 1), thief(ignition, 2), own(script, replay, 9)},
		},
		"who may be its server was": {
			uses: []model.TicketUse{unknown(image, served, 1), thief(ignition, 2), own(script, replay, 9)},
		},
		"its server is refused for another reason, and may be served yet": {
			uses: []model.TicketUse{thief(ignition, 2), own(script, model.RefusedAddress, 3)},
		},
		"the other machine was refused": {
			uses: []model.TicketUse{
				{What: ignition, MAC: "02:00:00:00:00:66", Refusal: model.RefusedAddress, First: at(2)},
				own(script, replay, 3),
			},
		},
		"not all uses are known": {uses: append(full, thief(ignition, 2), own(script, replay, 3))},
	} {
		t.Run(name, func(t *testing.T) {
			by, got := stolen(&model.Ticket{ID: "t", Config: tc.config}, &model.Progress{Ticket: "t", Uses: tc.uses})
			if got != tc.want || got && by.Client != "192.0.2.66" {
				t.Errorf("stolen: %t by %s, want %t", got, by.Client, tc.want)
			}
		})
	}
	if _, got := stolen(nil, nil); got {
		t.Error("a ticket that is not there is stolen")
	}
}

func TestAStolenTicketIsArmedAnew(t *testing.T) {
	taken := func(in *Input, rec *model.ServerRecord) {
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now, IgnitionAt: in.Now, Uses: []model.TicketUse{
			{
				What: model.ThingIgnition, Client: "192.0.2.66", MAC: "02:00:00:00:00:66",
				First: in.Now.Add(-time.Minute), Last: in.Now, Count: 1,
			},
			{
				What: model.ThingScript, MAC: "02:00:00:00:00:01", Own: true, Refusal: model.RefusedReplay,
				First: in.Now, Last: in.Now, Count: 1,
			},
		}}
	}
	secret := func(in *Input, rec *model.ServerRecord) {
		c := in.Desired.Claims[rec.Claim.Name]
		c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "web"}
		in.Desired.Secrets[model.Named[model.ObjectName](c.Namespace, "web")] = &model.Secret{
			Meta: model.Meta{Namespace: c.Namespace, Name: "web"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive("{}")},
		}
	}
	for name, tc := range map[string]struct {
		state   model.ServerState
		purpose model.TicketPurpose
		change  func(in *Input, rec *model.ServerRecord)
		want    bool
		is      model.ServerState
	}{
		"of a claim":   {state: model.StateReserved, purpose: model.PurposeClaim, want: true, is: model.StateReserved},
		"of discovery": {state: model.StateDiscovery, purpose: model.PurposeDiscovery, want: true, is: model.StateDiscovery},
		"of a wipe":    {state: model.StateCleanup, purpose: model.PurposeCleanup, want: true, is: model.StateCleanup},
		"though who took it says that it booted": {
			state: model.StateReserved, purpose: model.PurposeClaim, want: true, is: model.StateReserved,
			change: func(in *Input, rec *model.ServerRecord) {
				in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
			},
		},
		"but the third in a row is an Error": {
			state: model.StateReserved, purpose: model.PurposeClaim, want: true, is: model.StateError,
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.Boot.Theft = &model.Theft{Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Count: 2}
			},
		},
		"not the third since its server booted": {
			state: model.StateReserved, purpose: model.PurposeClaim, want: true, is: model.StateReserved,
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.Boot.Theft = &model.Theft{Purpose: model.PurposeClaim, Claim: rec.Claim.Name}
			},
		},
		"nor of another claim": {
			state: model.StateReserved, purpose: model.PurposeClaim, want: true, is: model.StateReserved,
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.Boot.Theft = &model.Theft{Purpose: model.PurposeClaim, Claim: "default/other", Count: 2}
			},
		},
		"never of a server that has an install": {
			state: model.StateReserved, purpose: model.PurposeClaim, is: model.StateReserved,
			change: func(in *Input, rec *model.ServerRecord) {
				rec.Install.Digest, rec.Install.Unconfirmed = rec.Boot.Ticket.Digest, in.Now
			},
		},
		"nor where the card may be the server's, for its probe told it": {
			state: model.StateReserved, purpose: model.PurposeClaim, is: model.StateReserved,
			change: func(in *Input, rec *model.ServerRecord) {
				in.Observed.Probes[rec.Name] = &model.ProbeReport{Data: model.ProbeData{NICs: []model.ProbeNIC{{MAC: "02:00:00:00:00:66"}}}}
			},
		},
		"nor where it is, as became known since": {
			state: model.StateReserved, purpose: model.PurposeClaim, is: model.StateReserved,
			change: func(in *Input, rec *model.ServerRecord) {
				in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{MACAddresses: []string{"02:00:00:00:00:66"}}
				rec.MACs = macs(model.MACByBMC, 0x66)
			},
		},
		"nor of one that may have": {
			state: model.StateReserved, purpose: model.PurposeClaim, is: model.StateReserved,
			change: func(in *Input, rec *model.ServerRecord) {
				rec.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Since: in.Now}
			},
		},
		"nor of one that is being wiped": {
			state: model.StateCleanup, purpose: model.PurposeCleanup, is: model.StateCleanup,
			change: func(in *Input, rec *model.ServerRecord) {
				in.Observed.WipeProgress[rec.Name] = &model.WipeProgress{Ticket: "t", ReceivedAt: in.Now}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(tc.state, tc.purpose)
			rec.Boot.Attempts = 1
			taken(in, rec)
			if tc.purpose == model.PurposeClaim {
				secret(in, rec)
			}
			if tc.change != nil {
				tc.change(in, rec)
			}
			s := newFleet(in).server(rec.Name)
			st := s.step()
			if got := s.rec.Boot.Ticket.Ended == model.TicketSpent; got != tc.want {
				t.Fatalf("it is Spent: %t, want %t: %+v", got, tc.want, s.rec.Boot.Ticket)
			}
			if s.rec.Life.State != tc.is {
				t.Errorf("its server is %s, want %s", s.rec.Life.State, tc.is)
			}
			if !tc.want {
				return
			}
			if done(st) != "" {
				t.Errorf("with it %s is done, want nothing", done(st))
			}
			if th := s.rec.Boot.Theft; th == nil || th.Client != "192.0.2.66" || th.MAC != "02:00:00:00:00:66" || th.Purpose != tc.purpose {
				t.Errorf("on record is %+v", th)
			}
			if tc.is == model.StateError {
				if s.rec.Life.Reason != model.ReasonTicketStolen || !strings.Contains(s.rec.Life.Message, "192.0.2.66") ||
					!strings.Contains(s.rec.Life.Message, "retry#1") {
					t.Errorf("the Error says %s: %s", s.rec.Life.Reason, s.rec.Life.Message)
				}
				return
			}
			if tc.purpose == model.PurposeDiscovery && s.rec.Boot.Attempts != 0 {
				t.Errorf("it counts as %d attempts", s.rec.Boot.Attempts)
			}
			in.Observed.Servers[rec.Name] = s.rec
			next := newFleet(in).server(rec.Name)
			does := map[bool]string{true: "arm boot ticket", false: "ask for power"}[tc.purpose == model.PurposeClaim]
			if st := next.step(); !strings.HasPrefix(done(st), does) {
				t.Errorf("then %q is done", done(st))
			}
			if tc.purpose != model.PurposeClaim {
				return
			}
			got := exposedText(in)
			if !strings.Contains(got, "Secret web was served to 192.0.2.66 (02:00:00:00:00:66)") {
				t.Errorf("of its Secret the claim says %q", got)
			}
		})
	}
}

func TestASecretIsExposedUntilItIsAnother(t *testing.T) {
	in, rec := ticketed(model.StateReserved, model.PurposeClaim)
	c := in.Desired.Claims[rec.Claim.Name]
	c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "web"}
	name := model.Named[model.ObjectName](c.Namespace, "web")
	put := func(text string) {
		in.Desired.Secrets[name] = &model.Secret{
			Meta: model.Meta{Namespace: c.Namespace, Name: "web"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive(text)},
		}
	}
	put("old")
	rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
	theft := &model.Theft{
		Claim: rec.Claim.Name, MAC: "02:00:00:00:00:66", At: in.Now,
		Secret: in.DigestKey.Sum(proposal.BootDigest(proposal.Boot{Secret: in.Desired.Secrets[name].Values})),
	}
	rec.Boot.Theft = theft
	says := func() string {
		return exposedText(in)
	}
	if got := says(); !strings.Contains(got, "rotate") {
		t.Errorf("the claim says %q", got)
	}
	c.Spec.Image = "os:2"
	if got := says(); !strings.Contains(got, "rotate") {
		t.Errorf("with another image the claim says %q", got)
	}
	rec.Boot.Theft = nil
	in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: []model.TicketUse{{What: model.ThingIgnition, Client: "192.0.2.1"}}}
	if got := says(); got != "" {
		t.Errorf("of a client that may be its server the claim says %q", got)
	}
	in.Observed.Progress[rec.Name].Uses[0].MAC = "02:00:00:00:00:66"
	if got := says(); !strings.Contains(got, "192.0.2.1 (02:00:00:00:00:66)") {
		t.Errorf("of another machine the claim says %q", got)
	}
	in.Observed.Progress[rec.Name].Uses[0].Own = true
	if got := says(); got != "" {
		t.Errorf("of its own server the claim says %q", got)
	}
	rec.Boot.Theft = theft
	put("new")
	if got := says(); got != "" {
		t.Errorf("with another Secret the claim says %q", got)
	}
}

// exposedText says how the Secret of the first server's claim was exposed, "" if it was not.
func exposedText(in *Input) string {
	if e := Plan(in).Servers[0].Exposed; e != nil {
		return e.Message
	}
	return ""
}

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestMisuseOfATicket(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	use := func(what model.TicketThing, client string, refusal model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: client, Refusal: refusal, First: at(minute), Last: at(minute), Count: 1}
	}
	const elsewhere = "the address is none that the server may ask from"
	by := func(mac string, own, token bool, u model.TicketUse) model.TicketUse {
		u.MAC, u.Own, u.Token = mac, own, token
		return u
	}
	script := use(model.ThingScript, "10.0.0.5", "", 1)
	tests := map[string]struct {
		uses   []model.TicketUse
		ticket string // whose the uses are, "t" if empty
		want   string // status, reason and message, "" = there is no such condition
	}{
		"nobody asked":                  {},
		"the server alone asked":        {uses: []model.TicketUse{script, use(model.ThingIgnition, "10.0.0.5", "", 2)}},
		"the server came again":         {uses: []model.TicketUse{script, use(model.ThingScript, "10.0.0.5", model.RefusedReplay, 2)}},
		"the server came too late":      {uses: []model.TicketUse{script, use(model.ThingScript, "10.0.0.5", model.RefusedSpent, 2)}},
		"so it did from another of its": {uses: []model.TicketUse{use(model.ThingScript, "10.0.0.6", model.RefusedSpent, 2)}},
		"another asked for its Ignition": {
			uses: []model.TicketUse{script, use(model.ThingIgnition, "10.0.0.9", model.RefusedAddress, 2)},
			want: "True WrongAddress: 10.0.0.9 asked for its Ignition and was refused: " + elsewhere,
		},
		"another guessed a token": {
			uses: []model.TicketUse{script, use(model.ThingIgnition, "10.0.0.9", model.RefusedToken, 2)},
			want: "True WrongToken: 10.0.0.9 asked for its Ignition and was refused: it did not show the ticket's token",
		},
		"another guessed a token, and had fetched the image": {
			uses: []model.TicketUse{
				script, use(model.ThingImage, "10.0.0.9", "", 2), use(model.ThingIgnition, "10.0.0.9", model.RefusedToken, 3),
			},
			want: "True WrongToken: 10.0.0.9 asked for its Ignition and was refused: it did not show the ticket's token",
		},
		"another reported in its name": {
			uses: []model.TicketUse{use(model.ThingReport, "10.0.0.9", model.RefusedAddress, 2)},
			want: "True WrongAddress: 10.0.0.9 sent a report and was refused: " + elsewhere,
		},
		"an address that was another's meanwhile": {
			uses: []model.TicketUse{script, use(model.ThingIgnition, "10.0.0.5", model.RefusedAddress, 2)},
			want: "True WrongAddress: 10.0.0.5 asked for its Ignition and was refused: " + elsewhere,
		},
		"an address that nobody knows": {
			uses: []model.TicketUse{use(model.ThingImage, "", model.RefusedToken, 2)},
			want: "True WrongToken: somebody asked for its image and was refused: it did not show the ticket's token",
		},
		"the newest few are named": {
			uses: []model.TicketUse{
				use(model.ThingScript, "10.0.0.7", model.RefusedToken, 2), use(model.ThingScript, "10.0.0.8", model.RefusedToken, 3),
				use(model.ThingScript, "10.0.0.9", model.RefusedSpent, 4), use(model.ThingScript, "10.0.0.10", model.RefusedReplay, 5),
			},
			want: "True Replay: 10.0.0.10 asked for its iPXE script and was refused: that is given once, and was; " +
				"10.0.0.9 asked for its iPXE script and was refused: the ticket is spent; " +
				"10.0.0.8 asked for its iPXE script and was refused: it did not show the ticket's token; and others before",
		},
		"another server asked": {
			uses: []model.TicketUse{script, by("m2", false, false, use(model.ThingScript, "10.0.0.9", model.RefusedOther, 2))},
			want: "True OtherServer: 10.0.0.9 (m2) asked for its iPXE script and was refused: its MAC address is another server's",
		},
		"who is not known may be the server": {uses: []model.TicketUse{
			by("m9", false, false, use(model.ThingScript, "10.0.0.9", model.RefusedUnknown, 2)),
			use(model.ThingScript, "10.0.0.9", model.RefusedCannotTell, 2),
			by("m1", true, false, use(model.ThingScript, "10.0.0.9", model.RefusedContested, 2)),
		}},
		"who is not known had the server's token": {
			uses: []model.TicketUse{script, by("m9", false, true, use(model.ThingIgnition, "10.0.0.9", model.RefusedUnknown, 2))},
			want: "True UnknownInterface: 10.0.0.9 (m9) asked for its Ignition and was refused: its MAC address is no known server's",
		},
		"the server by an address that nobody knows": {uses: []model.TicketUse{
			by("m1", true, false, use(model.ThingReport, "fe80::1%eth0", model.RefusedToken, 2)),
			by("m1", true, true, use(model.ThingReport, "fe80::1%eth0", model.RefusedSpent, 3)),
		}},
		"the server may be who cannot be told yet, and shows its token": {uses: []model.TicketUse{
			script, by("", false, true, use(model.ThingIgnition, "fe80::1%eth0", model.RefusedCannotTell, 2)),
			by("", false, true, use(model.ThingReport, "fe80::1%eth0", model.RefusedCannotTell, 3)),
		}},
		"a former ticket does not count": {
			uses:   []model.TicketUse{use(model.ThingIgnition, "10.0.0.9", model.RefusedAddress, 2)},
			ticket: "old",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
			p := &model.Progress{Ticket: "t", Uses: tc.uses}
			if tc.ticket != "" {
				p.Ticket = tc.ticket
			}
			in.Observed.Progress[rec.Name] = p
			in.Observed.Probes[rec.Name] = &model.ProbeReport{
				Data: model.ProbeData{NetworkInterfaces: []model.ProbeNetworkInterface{{IPAddresses: []string{"10.0.0.6"}}}},
			}
			shown := func() string {
				return fleettest.ConditionOf(serverStatusOf(in, rec.Name).Conditions, "TicketRefused")
			}
			if got := shown(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			for i := range p.Uses { // a client that goes on asking costs no commit
				p.Uses[i].Count, p.Uses[i].Last = 100-i, at(30+i)
			}
			if got := shown(); got != tc.want {
				t.Errorf("after more of the same got %s", got)
			}
		})
	}
}

func TestTheUsesOfATicketForPeople(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got := TicketUses(&model.Progress{Uses: []model.TicketUse{
		{What: model.ThingScript, Client: "10.0.0.5", First: at, Last: at, Count: 1},
		{What: model.ThingImage, Client: "10.0.0.5", First: at, Last: at.Add(time.Minute), Count: 3},
		{What: model.ThingIgnition, Refusal: model.RefusedSpent, First: at, Last: at, Count: 1},
	}})
	want := []string{
		"iPXE script for 10.0.0.5, once at 2026-11-21T12:00:00Z, served",
		"image for 10.0.0.5, 3 times from 2026-11-21T12:00:00Z to 2026-11-21T12:01:00Z, served",
		"Ignition for an unknown address, once at 2026-11-21T12:00:00Z, refused: the ticket is spent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := TicketUses(nil); got != nil {
		t.Errorf("of no progress it says %v", got)
	}
}

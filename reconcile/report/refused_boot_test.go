package report

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestWhoWasRefusedABoot(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	use := func(client, mac string, refusal model.TicketRefusal, first, last int) model.TicketUse {
		return model.TicketUse{
			What: model.ThingScript, Client: client, MAC: mac, Refusal: refusal, First: at(first), Last: at(last), Count: 1,
		}
	}
	served := use("10.0.0.5", "m1", "", 3, 3)
	served.Own = true
	unknown := use("10.0.0.9", "m9", model.RefusedUnknown, 2, 2)
	unknown.Port = "Gi1/0/7"
	for title, tc := range map[string]struct {
		uses  []model.TicketUse
		ended model.TicketState
		want  string // "" = there is no such condition
	}{
		"nobody": {},
		"an interface that is not known": {
			uses: []model.TicketUse{unknown},
			want: "True UnknownInterface: 10.0.0.9 (m9 on relay port Gi1/0/7) asked for its iPXE script and was refused: " +
				"its MAC address is no known server's; " +
				"if that is bmc00000-system-0, write ingot/mac-addresses: \"m9\" to its Server",
		},
		"one that cannot be told": {
			uses: []model.TicketUse{use("10.0.0.9", "", model.RefusedCannotTell, 2, 2)},
			want: "True CannotTell: 10.0.0.9 asked for its iPXE script and was refused: nothing shows its MAC address; " +
				"if that is bmc00000-system-0, have its network's DHCP relay send to Ingot as well " +
				"(a helper address, with dhcp mode proxy), or write an Endpoint with ip: 10.0.0.9 and its MAC address, " +
				"or set bindTickets for its network",
		},
		"one that cannot be told yet, by its link-local address": {
			uses: []model.TicketUse{use("fe80::1%eth0", "", model.RefusedCannotTell, 2, 2)},
			want: "True CannotTell: fe80::1%eth0 asked for its iPXE script and was refused: nothing shows its MAC address; " +
				"if that is bmc00000-system-0, it is served once it answers for that address on its link, or asks from one that it leased",
		},
		"one that was another": {
			uses: []model.TicketUse{use("10.0.0.9", "m1", model.RefusedContested, 2, 2)},
			want: "True Contested: 10.0.0.9 (m1) asked for its iPXE script and was refused: " +
				"its address is, or was a moment ago, somebody else's too; if nobody took that address on purpose, " +
				"it is served again some minutes after the address is one machine's alone",
		},
		"another server": {
			uses: []model.TicketUse{use("10.0.0.9", "m2", model.RefusedOther, 2, 2)},
			want: "True OtherServer: 10.0.0.9 (m2) asked for its iPXE script and was refused: its MAC address is another server's",
		},
		"nobody since the server was served": {uses: []model.TicketUse{unknown, served}},
		"one after the server was served": {
			uses: []model.TicketUse{served, use("10.0.0.9", "m2", model.RefusedOther, 2, 4)},
			want: "True OtherServer: 10.0.0.9 (m2) asked for its iPXE script and was refused: its MAC address is another server's",
		},
		"nobody once it has booted": {uses: []model.TicketUse{unknown}, ended: model.TicketBooted},
		"nobody of importance, once it was over": {
			uses: []model.TicketUse{served, use("10.0.0.9", "m2", model.RefusedOther, 4, 4)}, ended: model.TicketSpent,
		},
		"one for whose sake it never booted": {
			uses: []model.TicketUse{use("10.0.0.9", "m2", model.RefusedOther, 4, 4)}, ended: model.TicketSpent,
			want: "True OtherServer: 10.0.0.9 (m2) asked for its iPXE script and was refused: its MAC address is another server's",
		},
		"the server is refused for other reasons": {
			uses: []model.TicketUse{use("10.0.0.5", "m1", model.RefusedReplay, 4, 4), use("10.0.0.5", "m1", model.RefusedToken, 4, 4)},
		},
	} {
		t.Run(title, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
			rec.Boot.Ticket.Ended = tc.ended
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: tc.uses}
			if got := fleettest.ConditionOf(serverStatusOf(in, rec.Name).Conditions, "BootRefused"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

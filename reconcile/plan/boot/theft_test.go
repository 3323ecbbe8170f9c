package boot_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/boot"
)

func TestWhichTicketsAreStolen(t *testing.T) {
	const served, replay = model.TicketRefusal(""), model.RefusedReplay
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	own := func(what model.TicketThing, r model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.1", MAC: "02:00:00:00:00:01", Own: true, Refusal: r, First: at(minute), Last: at(minute)}
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
			uses: []model.TicketUse{thief(script, 1), thief(ignition, 2), own(script, replay, 3)}, want: true,
		},
		"its firmware asks DHCP":       {uses: []model.TicketUse{thief(ignition, 2), own(file, replay, 3)}, want: true},
		"cloud-init data are Ignition": {uses: []model.TicketUse{thief(cloud, 2), own(script, replay, 3)}, want: true},
		"a script is, where it is all that there is": {
			uses: []model.TicketUse{thief(script, 2), own(script, replay, 3)}, config: model.ThingScript, want: true,
		},
		"and only there":           {uses: []model.TicketUse{thief(script, 2), own(script, replay, 3)}},
		"its server took it alone": {uses: []model.TicketUse{own(script, served, 1), own(ignition, served, 2), own(script, replay, 9)}},
		"its server asked before":  {uses: []model.TicketUse{own(script, replay, 1), thief(ignition, 2)}},
		"its server has not asked": {uses: []model.TicketUse{thief(script, 1), thief(ignition, 2)}},
		"an unknown client asks":   {uses: []model.TicketUse{thief(ignition, 2), unknown(script, replay, 3)}},
		"another machine asks":     {uses: []model.TicketUse{thief(ignition, 2), {What: script, MAC: "02:00:00:00:00:77", Refusal: replay, Last: at(3)}}},
		"it was given to a machine that may be its server, at another address": {uses: []model.TicketUse{unknown(ignition, served, 2), own(script, replay, 3)}},
		"its server was given it, too":                                         {uses: []model.TicketUse{thief(ignition, 2), own(ignition, served, 3), own(script, replay, 9)}},
		"its server was given its script, and may go on with that": {
			uses: []model.TicketUse{own(script, served, 1), thief(ignition, 2), own(script, replay, 9)},
		},
		"its server was given its kernel":                                 {uses: []model.TicketUse{own(image, served, 1), thief(ignition, 2), own(script, replay, 9)}},
		"a client that may be its server was":                             {uses: []model.TicketUse{unknown(image, served, 1), thief(ignition, 2), own(script, replay, 9)}},
		"its server is refused for another reason, and may be served yet": {uses: []model.TicketUse{thief(ignition, 2), own(script, model.RefusedAddress, 3)}},
		"the other machine was refused": {
			uses: []model.TicketUse{{What: ignition, MAC: "02:00:00:00:00:66", Refusal: model.RefusedAddress, First: at(2)}, own(script, replay, 3)},
		},
		"the list of uses is full": {uses: append(full, thief(ignition, 2), own(script, replay, 3))},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateDiscovery, model.PurposeDiscovery)
			rec.Boot.Ticket.Config = tc.config
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: tc.uses}
			p, got := boot.Theft(plantest.ServerOf(in, rec.Name))
			if got != tc.want || got && p.Of.Record.Boot.Theft.Client != "192.0.2.66" {
				t.Errorf("stolen: %t, want %t", got, tc.want)
			}
		})
	}
}

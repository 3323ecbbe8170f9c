package dhcp

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/model"
)

func TestFirmwareThatAsksInVainIsNoted(t *testing.T) {
	with := func(change func(*model.Ticket)) model.TicketHolder {
		o := discovery()
		change(o.Ticket)
		return o
	}
	served := with(func(t *model.Ticket) { t.Purpose, t.IgnitionAt = model.PurposeClaim, t0 })
	for name, tc := range map[string]struct {
		offers tickets
		want   int
	}{
		"of a server whose Ignition was served":      {tickets{uuid: served, mac1: served}, 1},
		"not of another machine that gives its UUID": {tickets{uuid: served}, 0},
		"not of one that is told its boot file":      {tickets{uuid: discovery(), mac1: discovery()}, 0},
		"not of one whose ticket served its purpose": {tickets{mac1: with(func(t *model.Ticket) { t.Ended = model.TicketBooted })}, 0},
		"not of a machine that nobody knows":         {tickets{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var noted []*model.Ticket
			s := testServer(
				t, Options{Tickets: tc.offers, Loaders: loaders(t), InVain: func(t *model.Ticket, _ string) { noted = append(noted, t) }},
			)
			ask := packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, firmwares["Dell, UEFI"].options)
			hear(t, s, ask, anyone, port4Server)
			if len(noted) != tc.want {
				t.Errorf("%d tickets were noted, want %d", len(noted), tc.want)
			}
		})
	}
}

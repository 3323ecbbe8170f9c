package plan_test

import (
	"testing"
	"time"

	"ingot/model"
)

// What is not served has not failed.
func TestARefusedBootUsesUpNoAttempt(t *testing.T) {
	refused := model.TicketUse{What: model.ThingScript, Client: "10.0.0.9", Refusal: model.RefusedCannotTell, Count: 1}
	for title, tc := range map[string]struct {
		uses []model.TicketUse
		want int
	}{
		"nobody asked":                  {nil, 2},
		"somebody was refused":          {[]model.TicketUse{refused}, 1},
		"and somebody else was served":  {[]model.TicketUse{refused, {What: model.ThingScript, Client: "10.0.0.5", Count: 1}}, 2},
		"and firmware fetched an image": {[]model.TicketUse{refused, {What: model.ThingImage, Client: "10.0.0.5", Count: 1}}, 1},
	} {
		in, rec := ticketed(model.StateDiscovery, model.PurposeDiscovery)
		rec.Boot.Attempts, rec.Life.Since = 2, in.Now.Add(-time.Hour)
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: tc.uses}
		in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
		if got := stepOf(in, rec.Name).After.Boot.Attempts; got != tc.want {
			t.Errorf("%s: %d attempts, want %d", title, got, tc.want)
		}
	}
}

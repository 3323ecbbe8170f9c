package plan

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

func TestWhatConfiguresAMachine(t *testing.T) {
	for want, keys := range map[model.TicketThing][][]string{
		"":                   {{}, {"ignition"}, {"ignition", "ipxe-script"}},
		model.ThingCloudInit: {{"user-data"}, {"user-data", "ipxe-script"}},
		model.ThingScript:    {{"ipxe-script"}},
	} {
		for _, k := range keys {
			b := proposal.Boot{Secret: make(map[string]model.Sensitive)}
			for _, key := range k {
				b.Secret[key] = model.NewSensitive("x")
			}
			if got := b.Config(); got != want {
				t.Errorf("%v: %q, want %q", k, got, want)
			}
		}
	}
}

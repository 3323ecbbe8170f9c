package report

import (
	"fmt"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestWhatIsSaidOfMACAddresses(t *testing.T) {
	const (
		shared = "False MACAddressShared: 02:00:00:00:00:01: several systems show it, so it identifies none of them: write it in " +
			"annotation ingot/mac-addresses of the Server that has it"
		none = "False NoMACAddress: neither Git nor its BMC gives a MAC address of it, so it may be refused what it asks for: " +
			"write those of its network cards in annotation ingot/mac-addresses of Server bmc00000-system-0"
	)
	tests := map[string]struct {
		own, other []model.ServerMAC
		state      model.ServerState
		want       string
	}{
		"those of its BMC speak for themselves": {own: fleettest.MACs(model.MACByBMC, 1), other: fleettest.MACs(model.MACByBMC, 2)},
		"two systems show one": {
			own: fleettest.MACs(model.MACByBMC, 1, 2), other: fleettest.MACs(model.MACByBMC, 1, 3),
			want: shared,
		},
		"and Git says whose it is":                           {own: fleettest.MACs(model.MACByBMC, 1), other: fleettest.MACs(model.MACByGit, 1)},
		"a BMC shows what another one's firmware asked with": {own: fleettest.MACs(model.MACByBMC, 1), other: fleettest.MACs(model.MACBySighting, 1)},
		"there is none":                                      {want: none},
		"there is none yet":                                  {state: model.StateDiscovery},
		"its firmware asked when it was discovered": {
			own: fleettest.MACs(model.MACBySighting, 1),
			want: "True Sighting: 02:00:00:00:00:01 (sighting): its BMC shows none, " +
				"and these were seen to boot when it was discovered: to be certain, " +
				"write them in annotation ingot/mac-addresses of Server bmc00000-system-0",
		},
		"another one's firmware asked with one of its": {
			own: fleettest.MACs(model.MACBySighting, 1), other: fleettest.MACs(model.MACBySighting, 1),
			want: shared,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 2)
			for i, known := range [][]model.ServerMAC{tt.own, tt.other} {
				rec := in.Observed.Servers[model.ServerName(fmt.Sprintf("bmc%05d-system-0", i))]
				rec.MACs = known
				if i == 0 && tt.state != "" {
					rec.Life.State = tt.state
				}
			}
			if got := fleettest.ConditionOf(serverStatusOf(in, "bmc00000-system-0").Conditions, "Identified"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

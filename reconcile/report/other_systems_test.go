package report

import (
	"strings"
	"testing"

	"ingot/reconcile/internal/fleettest"
)

func TestABMCNamesTheSystemsThatAreNoServers(t *testing.T) {
	in := withRule(1)
	const why = "/redfish/v1/Systems/HGX_Baseboard_0 is no server: it cannot be reset"
	for name, facts := range in.Observed.BMCFacts {
		facts.Others = []string{why}
		files := fleettest.Rendered(t, reportOf(in))
		if got := string(files["bmcs/"+string(name)+".yaml"]); !strings.Contains(got, "otherSystems:\n  - '"+why+"'") {
			t.Errorf("it shows\n%s", got)
		}
		return
	}
	t.Error("there is no BMC")
}

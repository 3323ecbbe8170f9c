package report

import (
	"strings"
	"testing"

	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestARenamedClaimIsShownBeforeItsServerSaysSo(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	fleettest.Renamed("c00000", "shop")(in.Desired)
	r := reportOf(in)
	shown := string(fleettest.Rendered(t, r)["serverclaims/default/shop.yaml"])
	if !strings.Contains(shown, "phase: Bound") {
		t.Errorf("it shows\n%s", shown)
	}
}

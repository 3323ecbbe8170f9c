package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestBothMachinesOfOneUUIDSaySo(t *testing.T) {
	in := plantest.Waiting(plantest.BigFleet(2, 0), 1, nil)
	fleettest.AddDuplicate(in.Desired, in.Observed, 0)
	in.BMCRead["twin"] = in.Now
	fleettest.AddManifest(in.Desired, 1, model.ServerSpec{Unclaimable: true})
	var p Projector
	r := reportBy(&p, in)
	const advice = "if it is one machine behind two BMCs, take one of them out of Git; " +
		"if there are two, give the one that is newer here a UUID of its own with its vendor's tool (to act: rack operator)"
	const uuid = "00000000-0000-4000-8000-000000000001"
	got := map[string]string{}
	for _, path := range []string{
		"servers/bmc00000-system-0.yaml", "servers/bmc00001-system-0.yaml", "bmcs/twin.yaml", "bmcs/bmc00000.yaml",
	} {
		switch st := r.Documents[path].Object.(*Document).Status.(type) {
		case ServerStatus:
			got[path] = fleettest.ConditionOf(st.Conditions, model.ReasonDuplicateUUID)
		case BMCStatus:
			got[path] = fleettest.ConditionOf(st.Conditions, model.ReasonDuplicateUUID)
		}
	}
	want := map[string]string{
		"servers/bmc00000-system-0.yaml": "True DuplicateUUID: its UUID " + uuid +
			" is that of system /9 behind BMC twin too, " +
			"so nothing is armed for it and no claim is bound to it until that is gone: " + advice,
		"servers/bmc00001-system-0.yaml": "",
		"bmcs/twin.yaml": "True DuplicateUUID: system /9 has the UUID " + uuid +
			" of server bmc00000-system-0 behind BMC bmc00000, so it is no server of its own, " +
			"and nothing is armed for either until that is gone: " + advice,
		"bmcs/bmc00000.yaml": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	why := plantest.ClaimWhy(in, "default/w00000")
	if !strings.Contains(why.Message, "1 of a UUID that another machine has") {
		t.Errorf("the claim says %+v", why)
	}
	delete(in.Desired.BMCs, "twin")
	r = reportBy(&p, in)
	if got := fleettest.ConditionOf(r.Documents["servers/bmc00000-system-0.yaml"].Object.(*Document).Status.(ServerStatus).Conditions,
		model.ReasonDuplicateUUID); got != "" {
		t.Errorf("once the twin is gone it still says %s", got)
	}
}

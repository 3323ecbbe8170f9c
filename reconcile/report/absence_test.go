package report

import (
	"ingot/model"
	"strings"
	"testing"
)

// renamed has a commit give a claim another name.
func renamed(from, to string) func(d *model.Desired) {
	return func(d *model.Desired) {
		delete(d.Claims, model.ClaimName("default/"+from))
		d.Add(claim(to))
		d.Renamed = map[model.ClaimName]model.ClaimName{model.ClaimName("default/" + from): model.ClaimName("default/" + to)}
	}
}

func TestARenamedClaimIsShownBeforeItsServerSaysSo(t *testing.T) {
	in := bigFleet(1, 1)
	renamed("c00000", "shop")(in.Desired)
	r := reportOf(in)
	shown := string(rendered(t, r)["serverclaims/default/shop.yaml"])
	if !strings.Contains(shown, "phase: Bound") {
		t.Errorf("it shows\n%s", shown)
	}
}

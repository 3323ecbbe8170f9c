package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
)

func TestRecordsOfClaimsComeAndGo(t *testing.T) {
	for name, tt := range map[string]struct {
		change     func(d *model.Desired)
		news, gone []model.ClaimName
	}{
		"the same claims have their records": {change: func(*model.Desired) {}},
		"a new one gets one":                 {change: func(d *model.Desired) { d.Add(claim("new")) }, news: []model.ClaimName{"default/new"}},
		"one that is gone loses it":          {change: func(d *model.Desired) { delete(d.Claims, "default/w00001") }, gone: []model.ClaimName{"default/w00001"}},
		"one that is gone loses it, though a new one came": {
			change: func(d *model.Desired) { delete(d.Claims, "default/w00001"); d.Add(claim("new")) },
			news:   []model.ClaimName{"default/new"}, gone: []model.ClaimName{"default/w00001"},
		},
		"one that a server still serves keeps it": {change: func(d *model.Desired) { delete(d.Claims, "default/c00000") }},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			fleettest.AddWaiting(in.Desired, 2, nil)
			for name := range in.Desired.Claims {
				in.Observed.Claims[name] = &model.ClaimRecord{Name: name}
			}
			tt.change(in.Desired)
			decided := plan.Plan(in).Decided
			var news []model.ClaimName
			for _, c := range decided.Claims {
				news = append(news, c.Name)
			}
			if diff := cmp.Diff([][]model.ClaimName{tt.news, tt.gone}, [][]model.ClaimName{news, decided.DropClaims}); diff != "" {
				t.Errorf("records that are made and dropped (-want +got):\n%s", diff)
			}
		})
	}
}

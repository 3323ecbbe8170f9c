package report

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
)

func TestWhatAHurriedReportLeavesOut(t *testing.T) {
	waits := func(reason, message string) *model.Document {
		return file(model.KindServerClaim, "default", "web", ClaimStatus{
			Phase:      "Unbound",
			Conditions: []metav1.Condition{{Type: "Bound", Status: metav1.ConditionFalse, Reason: reason, Message: message}},
		})
	}
	before := waits("NoServerFree", "2 servers: 2 Initial")
	changed := *before.Object.(*Document)
	changed.Spec = "another"
	for name, tc := range map[string]struct {
		claims int
		now    *model.Document
		left   bool
	}{
		"how many servers are in which state": {
			claims: manyWaiting,
			now:    waits("NoServerFree", "2 servers: 1 Available, 1 Initial"),
			left:   true,
		},
		"another reason is news": {claims: manyWaiting, now: waits("SecretMissing", "Secret a/b is not in Git")},
		"a server is news": {
			claims: manyWaiting,
			now:    file(model.KindServerClaim, "default", "web", ClaimStatus{Phase: "Bound", Server: "s1"}),
		},
		"another manifest is news": {claims: manyWaiting, now: &model.Document{Object: &changed}},
		"few claims are told at once, as the rest": {
			claims: manyWaiting - 1,
			now:    waits("NoServerFree", "2 servers: 1 Available, 1 Initial"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := make(map[string]*model.Document), make(map[string]*model.Document)
			for i := range tc.claims {
				path := fmt.Sprintf("serverclaims/default/web-%d.yaml", i)
				old[path], now[path] = before, tc.now
			}
			var story Story
			story.Published(&plan.Result{}, &model.Report{Documents: old})
			r := &model.Report{Documents: now}
			left := story.Hurry(r)
			for path, d := range r.Documents {
				if (d == before) != tc.left || (left == tc.claims) != tc.left || now[path] != tc.now {
					t.Fatalf("%s: %d left out, shown %+v", path, left, d.Object)
				}
			}
		})
	}
}

package merge

import (
	"ingot/model"
	"ingot/reconcile/report"
	"time"
)

func claim(name string, change ...func(*model.ServerClaim)) *model.ServerClaim {
	c := &model.ServerClaim{
		Meta: model.Meta{Name: name, Namespace: "default"},
		Spec: model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// restored are the records that a lost store is filled with from the status branch.
func restored(files map[string][]byte) (model.Records, []error) {
	b, problems := report.ReadBranch(files)
	none := model.NewObserved().Records
	r := Records(Input{Store: &none, Branch: &b, Now: time.Now(), Seed: "seed"})
	return r.Records, problems
}

package report

import (
	"ingot/model"
	"ingot/reconcile/plan"
)

// inState puts a server of a big fleet into a state.
func inState(in *plan.Input, i int, change func(*model.ServerRecord)) {
	name := model.ServerName(bmcName(i) + "-system-0")
	rec := *in.Observed.Servers[name]
	change(&rec)
	in.Observed.Servers[name] = &rec
}

func bmcName(i int) string {
	return string([]byte{'b', 'm', 'c', '0', '0', '0', byte('0' + i/10), byte('0' + i%10)})
}

func manifest(in *plan.Input, i int, spec model.ServerSpec) {
	in.Desired.Add(&model.Server{Meta: model.Meta{Name: bmcName(i) + "-system-0"}, Spec: spec})
}

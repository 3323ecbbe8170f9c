package report

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/world"
)

// view is a plan's result, looked up by name.
type view struct {
	*plan.Result
	in         *world.Input
	servers    map[model.ServerName]*plan.Server
	bmcs       map[model.BMCName]*bmcs.BMC
	behind     map[model.BMCName][]model.ServerName
	clients    map[string]int // how many servers' requests came from an address; made when first needed
	macHolders map[string]int // how many servers have a MAC address; made when first needed
}

func newView(in *world.Input, r *plan.Result) *view {
	v := &view{
		Result: r, in: in,
		servers: make(map[model.ServerName]*plan.Server, len(r.Servers)),
		bmcs:    make(map[model.BMCName]*bmcs.BMC, len(r.BMCs)),
		behind:  make(map[model.BMCName][]model.ServerName, len(r.BMCs)),
	}
	for _, s := range r.Servers {
		v.servers[s.Name] = s
		v.behind[s.Record.BMC] = append(v.behind[s.Record.BMC], s.Name)
	}
	for _, b := range r.BMCs {
		v.bmcs[b.Name] = b
	}
	return v
}

// problems are what is wrong in the manifests, by themselves and beside what is known.
func (v *view) problems() []model.Problem {
	if len(v.Unmatched) == 0 {
		return v.in.Desired.Problems
	}
	all := slices.Concat(v.in.Desired.Problems, v.Unmatched)
	model.SortProblems(all)
	return all
}

type serverView struct {
	*plan.Server
	in *world.Input
}

func (v *view) server(s *plan.Server) serverView { return serverView{s, v.in} }

// facts are what was read of the server, empty before anything was.
func (s serverView) facts() *model.ServerFacts {
	if f := s.in.Observed.ServerFacts[s.Name]; f != nil {
		return f
	}
	return &model.ServerFacts{Name: s.Name}
}

func (s serverView) progress() *model.Progress { return s.in.Observed.ProgressOf(s.Record) }

func (s serverView) trace() model.BootTrace { return s.in.Observed.BootOf(s.Record) }

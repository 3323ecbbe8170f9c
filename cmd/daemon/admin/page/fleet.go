package page

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

// Limits of the page of the fleet. It links to the rest.
const (
	maxWaits    = 30   // rows
	maxNamed    = 3    // objects in one of these rows
	maxProblems = 10   // problems
	maxDrawn    = 1000 // servers in racks
)

type fleetPage struct {
	*report.Fleet
	Git               Git
	InForce, Next     model.Revision
	Counts, Claims    []count
	Waits             []wait
	Act, MoreWait     int
	First             []problem
	MoreProblems      int
	Racks             racksView
	Servers, Unplaced int
}

// count is the number of objects in a state.
type count struct {
	State string
	N     int
	URL   string
}

// wait is a cause for which objects of one kind in one state wait.
type wait struct {
	report.Waiting // Since is the first
	Folder         report.Folder
	State          string
	Objects        []*report.Document // the first of them
	More           int
	URL            string // the list of all
}

type problem struct {
	model.Problem
	Place link
}

func (p *page) serveFleet(w http.ResponseWriter, r *http.Request) {
	v := p.view()
	f := fleetPage{
		Fleet: v.docs.Fleet, Git: p.Fleet.Git(), InForce: cmp.Or(v.docs.Fleet.Applied, v.docs.Fleet.Observed), Counts: v.servers, Claims: v.claims, Waits: v.waits, Act: v.act, MoreWait: v.moreWait,
		First: v.problems(), Racks: v.racks, Servers: v.totals["servers"], Unplaced: v.unplaced,
	}
	if f.Git.Seen != f.InForce {
		f.Next = f.Git.Seen
	}
	f.MoreProblems = v.totals["problems"] - min(len(f.First), maxProblems)
	f.First = f.First[:min(len(f.First), maxProblems)]
	v.show(w, r, http.StatusOK, "fleet", "", f)
}

func (v *view) problems() []problem {
	all := make([]problem, len(v.docs.Fleet.Problems))
	for i, p := range v.docs.Fleet.Problems {
		all[i] = problem{p, link{place(p), v.Web.File(v.docs.Fleet.Observed.Commit(), p.File, p.Line)}}
	}
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(severity(a.Severity), severity(b.Severity)) })
	return all
}

func severity(s model.Severity) int { return slices.Index(severities(), string(s)) }

func severities() []string {
	return []string{string(model.SeverityError), string(model.SeverityWarning)}
}

// glance is the part of the pages that is made from all documents, once for each change.
type glance struct {
	docs            *report.Documents
	totals          map[string]int // objects, by name of their list
	servers, claims []count
	act, moreWait   int
	waits           []wait
	racks           racksView
	unplaced        int
}

func newGlance(docs *report.Documents) *glance {
	servers, claims := docs.List(report.Servers), docs.ClaimsInGit()
	g := &glance{
		docs: docs, totals: map[string]int{"servers": len(servers), "claims": len(claims), "problems": len(docs.Fleet.Problems) + docs.Fleet.ProblemsLeftOut},
		servers: counts("servers", serverStates(), servers), claims: counts("claims", report.ClaimStates(), claims), racks: racksOf(docs),
	}
	for _, d := range servers {
		if d.Overview().Summary.Rack == "" {
			g.unplaced++
		}
	}
	g.wait("servers", servers)
	g.wait("claims", claims)
	g.wait("bmcs", docs.List(report.BMCs))
	g.wait("endpoints", docs.List(report.Endpoints))
	slices.SortStableFunc(g.waits, func(a, b wait) int {
		return cmp.Or(cmp.Compare(resolves(a), resolves(b)), a.Since.Compare(b.Since))
	})
	g.moreWait = max(len(g.waits)-maxWaits, 0)
	g.waits = slices.Clip(g.waits[:len(g.waits)-g.moreWait])
	return g
}

// resolves is 1 for a cause that needs no action.
func resolves(w wait) int {
	if w.Actor == "" {
		return 1
	}
	return 0
}

func serverStates() []string {
	states := make([]string, len(model.ServerStates))
	for i, st := range model.ServerStates {
		states[i] = string(st)
	}
	return states
}

func counts(list string, states []string, docs []*report.Document) []count {
	all := make([]count, len(states))
	for i, st := range states {
		all[i] = count{State: st, URL: address("/"+list, "state", st)}
	}
	for _, d := range docs {
		if i := slices.Index(states, d.Overview().Summary.State); i >= 0 {
			all[i].N++
		}
	}
	return all
}

// wait adds the causes for which the objects of a list wait.
func (g *glance) wait(list string, docs []*report.Document) {
	type key struct {
		folder                        report.Folder
		state, reason, message, actor string
	}
	rows := make(map[key]int)
	for _, d := range docs {
		o := d.Overview()
		if o.NeedsAction() {
			g.act++
		}
		for _, waiting := range o.Waiting {
			k := key{d.Folder(), o.Summary.State, waiting.Reason, waiting.Message, string(waiting.Actor)}
			at, known := rows[k]
			if !known {
				at, rows[k] = len(g.waits), len(g.waits)
				g.waits = append(g.waits, wait{Waiting: waiting, Folder: k.folder, State: k.state, URL: address("/"+list, "q", searchFor(waiting), "state", k.state)})
			}
			w := &g.waits[at]
			w.Since = earlier(w.Since, waiting.Since)
			if len(w.Objects) < maxNamed {
				w.Objects = append(w.Objects, d)
			} else {
				w.More++
			}
		}
	}
}

// searchFor is a search that finds the objects with a cause.
func searchFor(w report.Waiting) string {
	if len(w.Message) > maxText {
		return w.Reason
	}
	return w.Text()
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

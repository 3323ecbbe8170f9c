package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

// Limits of the fleet's page. What there is more is a link away.
const (
	maxWaits    = 30   // lines of what waits
	maxNamed    = 3    // objects that one of these lines names
	maxEffects  = 50   // steps of one list that is held
	maxProblems = 10   // problems
	maxDrawn    = 1000 // servers in racks
)

// fleetPage is what the fleet's page shows.
type fleetPage struct {
	Revision revisionView
	Counts   []count // of servers by state
	Claims   []count
	Act      int // objects of which somebody has to act
	Held     []heldView
	Waits    []wait
	MoreWait int
	Problems []problemView
	MoreProblems,
	Errors int
	Racks    racksView
	Looks    []report.Look
	Servers  int
	Unplaced int // servers without a rack
}

// revisionView is how Git and the status branch stand.
type revisionView struct {
	InForce       link
	Since         stamp
	Next          link // the revision that is seen and not in force yet
	SignedBy      string
	Trouble       string // reason of what is wrong with the branch as a whole
	TroubleText   string
	TroubleSince  stamp
	Fetched       stamp
	Status        link
	StatusSays    string
	StatusAt      stamp
	StatusFailing string
	FailingSince  stamp
}

// count is how many objects are in a state.
type count struct {
	State, Class string
	N            int
	URL          string
}

// heldView is a list of what waits for an approval.
type heldView struct {
	report.Held
	Title string // what is held
	Line  string // that approves it
	Since stamp
	Until stamp
	Steps []heldStep
	More  string
}

// heldStep is what will happen to one object, and the line that approves that alone.
type heldStep struct{ Text, Line string }

// wait is what objects of one kind wait for.
type wait struct {
	Kind       string
	State      string
	Class      string
	Objects    []link
	More       link // to those that are not named
	Why, Actor string
	Since      stamp // since when the first of them waits
	since      time.Time
	names      []string
}

// problemView is a problem in the manifests.
type problemView struct {
	Where           link
	Severity, Class string
	Object, Field   string
	Message         string
}

// racksView are the elevations of racks.
type racksView struct {
	Places  []elevation
	LeftOut string   // racks that are not drawn
	Others  []others // locations that are on pages of their own
}

type others struct {
	link
	Summary string
}

func (p *page) fleet(w http.ResponseWriter, r *http.Request) {
	v := p.look()
	g := p.glanceAt(v)
	problems := v.problemViews(maxProblems)
	v.show(w, r, http.StatusOK, "fleet", "Fleet", fleetPage{
		Revision: v.revision(), Counts: g.servers, Claims: g.claims, Act: g.act, Held: v.held(g.held), Waits: v.since(g.waits), MoreWait: g.more,
		Problems: problems, MoreProblems: len(v.rows.Problems) - len(problems), Racks: g.racks, Looks: report.Looks(),
		Servers: len(v.rows.Servers), Unplaced: g.unplaced,
	})
}

// glance is what of the fleet's page is made of all objects. It is made once a report, for
// whoever looks. Nobody changes it.
type glance struct {
	of              *model.Report
	rows            *query.Rows
	servers, claims []count
	act, more       int
	waits           []wait
	held            []report.Held
	racks           racksView
	unplaced        int
}

// glanceAt returns what the fleet's page is made of, of the report that is looked at.
func (p *page) glanceAt(v *view) *glance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.glance; g != nil && g.of == v.report && g.rows == v.rows {
		return g
	}
	g := &glance{
		of: v.report, rows: v.rows, servers: v.serverCounts(), claims: v.claimCounts(), held: report.HeldOf(v.report),
		racks: v.racksView(), unplaced: v.unplaced(),
	}
	g.act, g.waits, g.more = v.waits()
	p.glance = g
	return g
}

func (v *view) revision() revisionView {
	g := v.Fleet.Git()
	out := revisionView{Fetched: v.stamp(g.Fetched), Since: v.stamp(g.InForce), Status: link{shortHash(g.Status.Hash), v.Web.Commit(g.Status.Hash)}, StatusAt: v.stamp(g.Status.At)}
	if len(g.Status.Lines) > 0 {
		out.StatusSays = g.Status.Lines[0]
	}
	if g.Failing != nil {
		out.StatusFailing, out.FailingSince = g.Failing.Error(), v.stamp(g.FailingSince)
	}
	if s := g.Source; s.Reason != "" {
		out.Trouble, out.TroubleText, out.TroubleSince = s.Reason, s.Message, v.stamp(s.Since)
	}
	inForce := model.Revision("")
	if rev := v.rows.Revision; rev != nil {
		inForce = cmp.Or(rev.Applied, rev.Observed)
		if rev.Verified != nil {
			out.SignedBy = rev.Verified.SignedBy
		}
	}
	out.InForce = v.revisionLink(inForce)
	if g.Seen != "" && g.Seen != inForce {
		out.Next = v.revisionLink(g.Seen)
	}
	return out
}

// revisionLink is a revision that leads to its commit.
func (v *view) revisionLink(r model.Revision) link {
	return link{string(r), v.Web.Commit(commitOf(r))}
}

// commitOf is the hash in a revision such as main@sha1:8c1f0a2b.
func commitOf(r model.Revision) string {
	if i := strings.LastIndexByte(string(r), ':'); i >= 0 {
		return string(r)[i+1:]
	}
	return ""
}

func (v *view) serverCounts() []count {
	counts := make(map[string]int)
	for _, s := range v.rows.Servers {
		counts[s.State]++
	}
	var all []count
	for _, st := range model.ServerStates {
		all = append(all, count{string(st), stateClass(string(st)), counts[string(st)], "/servers?state=" + string(st)})
	}
	return all
}

func (v *view) claimCounts() []count {
	counts := make(map[string]int)
	for _, c := range v.rows.Claims {
		counts[c.State]++
	}
	var all []count
	for _, st := range []report.ClaimState{report.ClaimUnbound, report.ClaimBound, report.ClaimUnconfirmed, report.ClaimBooted} {
		all = append(all, count{string(st), stateClass(string(st)), counts[string(st)], "/claims?state=" + string(st)})
	}
	return all
}

func (v *view) held(lists []report.Held) []heldView {
	var all []heldView
	for _, h := range lists {
		of := heldView{Held: h, Title: strings.TrimPrefix(h.Subject, "approve "), Line: proposal.ApproveLine(h.Token), Since: v.stamp(h.Since), Until: v.stamp(h.Until), More: h.LeftOut}
		for _, e := range h.Effects[:min(len(h.Effects), maxEffects)] {
			step := heldStep{Text: e.Text}
			if e.Token != "" {
				step.Line = proposal.ApproveLine(e.Token)
			}
			of.Steps = append(of.Steps, step)
		}
		if n := len(h.Effects) - maxEffects; n > 0 && of.More == "" {
			of.More = text.Plural(n, "more step")
		}
		all = append(all, of)
	}
	return all
}

// waits gathers what objects wait for, those of which somebody has to act first. It also
// returns of how many objects that is, and how many lines are left out.
func (v *view) waits() (act int, shown []wait, more int) {
	groups := make(map[[4]string]*wait)
	add := func(kind string, c *query.Common) {
		if c.Why == "" {
			return
		}
		if c.Actor != "" {
			act++
		}
		key := [4]string{kind, c.State, c.Why, c.Actor}
		g := groups[key]
		if g == nil {
			g = &wait{Kind: kind, State: c.State, Class: stateClass(c.State), Why: c.Why, Actor: c.Actor, since: c.WhySince}
			groups[key] = g
		}
		if c.WhySince.Before(g.since) {
			g.since = c.WhySince
		}
		g.names = append(g.names, c.Name)
	}
	for _, r := range v.rows.Servers {
		add("server", &r.Common)
	}
	for _, r := range v.rows.Claims {
		add("claim", &r.Common)
	}
	for _, r := range v.rows.BMCs {
		add("bmc", &r.Common)
	}
	for _, r := range v.rows.Endpoints {
		add("endpoint", &r.Common)
	}
	all := make([]*wait, 0, len(groups))
	for _, g := range groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *wait) int {
		return cmp.Or(cmp.Compare(idle(a.Actor), idle(b.Actor)), a.since.Compare(b.since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.names[0], b.names[0]))
	})
	for _, g := range all[:min(len(all), maxWaits)] {
		shown = append(shown, withNames(g))
	}
	return act, shown, max(len(all)-maxWaits, 0)
}

// idle is 0 for an actor who has to act, 1 for nobody.
func idle(actor string) int {
	if actor == "" {
		return 1
	}
	return 0
}

// since are lines with how long they wait by now.
func (v *view) since(waits []wait) []wait {
	now := slices.Clone(waits)
	for i := range now {
		now[i].Since = v.stamp(now[i].since)
	}
	return now
}

// withNames is a line with the names of its first objects.
func withNames(g *wait) wait {
	for _, name := range g.names[:min(len(g.names), maxNamed)] {
		g.Objects = append(g.Objects, objectLink(g.Kind, name))
	}
	if n := len(g.names) - maxNamed; n > 0 {
		table := map[string]string{"server": "/servers", "claim": "/claims", "bmc": "/bmcs", "endpoint": "/endpoints"}[g.Kind]
		g.More = link{text.Plural(n, "more"), table + "?" + url.Values{"why": {g.Why}, "state": {g.State}}.Encode()}
		g.More.Text = strings.TrimSuffix(g.More.Text, "s")
	}
	g.names = nil
	return *g
}

func objectLink(kind, name string) link {
	if kind == "claim" {
		return toClaim(name)
	}
	return to(kind, name)
}

func (v *view) problemViews(most int) []problemView {
	rows := slices.Clone(v.rows.Problems)
	severity := func(p *query.Problem) int {
		if p.State == string(model.SeverityError) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b *query.Problem) int { return cmp.Compare(severity(a), severity(b)) })
	var all []problemView
	for _, p := range rows[:min(len(rows), most)] {
		all = append(all, problemView{
			Where: link{p.Name, v.Web.File(v.seen(), p.File, p.Line)}, Severity: p.State, Class: stateClass(p.State),
			Object: p.Object, Field: p.Field, Message: p.Why,
		})
	}
	return all
}

// seen is the commit that problems and manifests are read of.
func (v *view) seen() string {
	if rev := v.rows.Revision; rev != nil {
		return commitOf(rev.Observed)
	}
	return ""
}

func (v *view) unplaced() (n int) {
	for _, s := range v.rows.Servers {
		if s.Rack == "" {
			n++
		}
	}
	return n
}

// elevation is the racks of one location as drawings.
type elevation struct {
	Title, Summary string
	Drawings       []drawing
}

package report

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// Projector makes the reports of the status branch. It keeps the documents that
// it made: one whose inputs did not change is the same document again, so that
// nothing is written out twice. It is not for concurrent use.
type Projector struct {
	servers map[model.ServerName]projected
	rest    map[string]projected // by path
	drawn   map[string]drawing   // by path
	texts   map[string]*model.Document
	tiles   []tile // the servers with a place, in the order of names
	page    page
}

// projected is a document and all that it was made from.
type projected struct {
	path string
	from any
	doc  *model.Document
	row  row // of the page
}

// drawing is a picture and what it was drawn of.
type drawing struct {
	of  picture
	doc *model.Document
}

// NewProjector returns a Projector that has made no report.
func NewProjector() *Projector {
	return &Projector{
		servers: make(map[model.ServerName]projected), rest: make(map[string]projected),
		drawn: make(map[string]drawing), texts: make(map[string]*model.Document),
	}
}

// Report projects an input and what was planned for it onto what the status branch
// shows. What happened since another report is a Story's to tell.
func (p *Projector) Report(in *world.Input, result *plan.Result, fence uint64, holder model.Holder) *model.Report {
	v := newView(in, result)
	r := &model.Report{
		Revision: in.Desired.Revision, Fence: fence, Holder: holder,
		Documents: make(map[string]*model.Document),
	}
	p.page.reset(v)
	p.projectServers(v, r)
	p.projectBMCs(v, r)
	p.projectClaims(v, r)
	p.projectRest(v, r)
	p.projectPictures(r)
	for _, b := range badges {
		value, colour := b.draw(&p.page)
		p.show(r, b.path, badgeSVG(b.alt, value, colour))
	}
	p.show(r, model.ReportReadme, shownReadme(p.page.readme()))
	p.forget(r)
	return r
}

// projectPictures draws the pictures of racks in which something changed.
func (p *Projector) projectPictures(r *model.Report) {
	p.page.pictures, p.page.picturesLeftOut = picturesOf(p.tiles)
	for _, pic := range p.page.pictures {
		old := p.drawn[pic.path]
		if old.doc == nil || !reflect.DeepEqual(old.of, pic) {
			old = drawing{pic, &model.Document{Text: pic.svg()}}
			p.drawn[pic.path] = old
		}
		r.Documents[pic.path] = old.doc
	}
}

// show shows a text at a path.
func (p *Projector) show(r *model.Report, path, text string) {
	if p.texts[path] == nil || p.texts[path].Text != text {
		p.texts[path] = &model.Document{Text: text}
	}
	r.Documents[path] = p.texts[path]
}

// madeOf is a why as a part of what a document was made from.
func madeOf(why *proposal.Why) proposal.Why {
	if why == nil {
		return proposal.Why{}
	}
	return *why
}

// serverInputs is all that a server's document is made from.
type serverInputs struct {
	rec       *model.ServerRecord
	facts     *model.ServerFacts
	manifest  *model.Server
	bmc       *model.BMC
	boot      model.BootTrace
	stage     install.Stage
	why       proposal.Why
	duplicate proposal.Why
	approval  proposal.Why
	claim     *model.ServerClaim // it decides on its power
	shared    string             // its MAC addresses that others show, too
	taints    string             // by ServerReadinessRules
}

func (p *Projector) projectServers(v *view, r *model.Report) {
	p.tiles = nil
	for _, server := range v.Servers {
		s := v.server(server)
		from := serverInputs{
			rec: s.Record, facts: v.in.Observed.ServerFacts[s.Name], manifest: s.Manifest, boot: s.trace(),
			stage: s.Stage, why: s.Why, duplicate: madeOf(s.Duplicate), approval: madeOf(s.Approval),
			shared: strings.Join(v.sharedMACs(s.Record.MACs), " "),
			taints: madeOfTaints(s.Taints),
			claim:  s.Claim,
		}
		if b := v.bmcs[s.Record.BMC]; b != nil && !b.Found {
			from.bmc = b.Manifest
		}
		old := p.servers[s.Name]
		if old.doc == nil || old.from != any(from) {
			old = p.made(serverFolder+string(s.Name)+".yaml", from, old, v.serverDocument(s))
			p.servers[s.Name] = old
		}
		r.Documents[serverFolder+string(s.Name)+".yaml"] = old.doc
		p.page.servers = append(p.page.servers, old.row)
		if at := old.doc.Object.(*Document).at; at.rack != "" {
			p.tiles = append(p.tiles, tile{s.Name, s.Record.Life.State, old.row.urgency == needsSomebody, at})
		}
		p.projectBoot(s, r)
	}
}

// bootInputs is all that a boot configuration is made from.
type bootInputs struct {
	ticket  *model.Ticket
	claim   *model.ServerClaim
	problem *model.BootProblem
	// What stands in the way of arming it, and of booting it.
	unarmed, unbooted proposal.Why
	progress          *model.Progress
	booted            *model.BootState
}

// projectBoot shows what a server boots, or is about to.
func (p *Projector) projectBoot(s serverView, r *model.Report) {
	name := s.bootConfigurationName()
	if name.IsBootConfiguration() || !s.armed() && !s.arming() {
		return // it is in Git, see projectClaims, or there is none
	}
	ns, n := model.SplitName(name)
	p.keep(r, ClaimPath(model.BootConfigurationName(ns, n)), s.bootInputs(), func() any { return s.bootDocument() })
}

func (s serverView) bootInputs() bootInputs {
	if !s.armed() {
		return bootInputs{claim: s.Claim, problem: s.Record.Boot.Problem, unarmed: madeOf(s.Unarmed)}
	}
	return bootInputs{
		ticket: s.Record.Boot.Ticket, problem: s.Record.Boot.Problem, unbooted: madeOf(s.Unbooted),
		progress: s.progress(), booted: s.in.Observed.BootStates[s.Name],
	}
}

// bmcInputs is all that a BMC's document is made from.
type bmcInputs struct {
	manifest *model.BMC
	// The manifest of one that was found is made anew each time, of these.
	device    *model.EndpointRecord
	prefix    *model.MACPrefix
	rec       *model.BMCRecord
	facts     *model.BMCFacts
	why       proposal.Why
	servers   int
	address   string
	duplicate string
}

func (p *Projector) projectBMCs(v *view, r *model.Report) {
	for _, b := range v.BMCs {
		from := bmcInputs{
			manifest: b.Manifest, rec: v.in.Observed.BMCs[b.Name], facts: v.in.Observed.BMCFacts[b.Name],
			why: b.Why, servers: len(v.behind[b.Name]), address: b.Target.Address, duplicate: strings.Join(b.Duplicates, " "),
		}
		if b.Found {
			from.manifest, from.device, from.prefix = nil, b.Endpoint.Record, b.Endpoint.Prefix
		}
		if kept := p.keep(r, bmcFolder+string(b.Name)+".yaml", from, func() any { return v.bmcDocument(b) }); kept.urgency != inOrder {
			p.page.bmcs = append(p.page.bmcs, kept)
		}
	}
}

// claimInputs is all that a claim's document is made from. There may be very many claims
// without a server, of which the rest is empty.
type claimInputs struct {
	manifest *model.ServerClaim
	rec      *model.ClaimRecord
	why      proposal.Why // of the claim, or of its server
	absent   any          // model.Absence, which few have; nil = none
}

// servedInputs is all that the document of a claim with a server is made from.
type servedInputs struct {
	claimInputs
	server *model.ServerRecord
	booted *model.BootState
	// What else its server says of it.
	pending, unconfirmed, exposed, approval proposal.Why
	ran                                     bool
	boot                                    bootInputs // of a ServerBootConfiguration
}

func (p *Projector) projectClaims(v *view, r *model.Report) {
	for _, c := range v.Claims {
		own := claimInputs{manifest: c.Manifest, rec: v.in.Observed.Claims[c.Name], why: c.Why}
		if a, listed := v.in.Desired.Absence(c.Name.Identity()); listed {
			own.absent = a
		}
		from := any(own)
		if s := v.servers[c.Server]; s != nil {
			own.why = s.Why
			served := servedInputs{
				claimInputs: own, server: s.Record, booted: v.in.Observed.BootStates[s.Name], pending: madeOf(s.Pending),
				unconfirmed: madeOf(s.Unconfirmed), exposed: madeOf(s.Exposed), approval: madeOf(s.Approval), ran: s.RanWhenLastRead,
			}
			if c.Name.IsBootConfiguration() {
				served.boot = v.server(s).bootInputs()
			}
			from = served
		}
		p.page.claims = append(p.page.claims, p.keep(r, ClaimPath(c.Name), from, func() any { return v.claimDocument(c) }))
	}
	for _, s := range v.Servers {
		if a, held := v.heldClaim(s); held {
			from := servedInputs{claimInputs: claimInputs{rec: v.in.Observed.Claims[s.Record.Claim.Name], absent: a}, server: s.Record}
			p.page.claims = append(p.page.claims, p.keep(r, ClaimPath(s.Record.Claim.Name), from, func() any { return v.heldClaimDocument(s, a) }))
		}
	}
}

// endpointInputs is all that a device's document is made from.
type endpointInputs struct {
	rec       *model.EndpointRecord
	manifest  *model.Endpoint
	prefix    *model.MACPrefix
	ip        string
	by        model.BMCName
	isBMC     bool
	why, lost proposal.Why
}

// maintenanceInputs is all that a ServerMaintenance's document is made from.
type maintenanceInputs struct {
	manifest *model.ServerMaintenance
	status   any
}

// readinessInputs is all that a ServerReadinessRule's document is made from.
type readinessInputs struct {
	manifest       *model.ServerReadinessRule
	refused        bool
	servers, ready int
	unready        string
}

// revisionInputs is all that revision.yaml is made from.
type revisionInputs struct {
	source model.SourceState
	signer string
	fleet  uint64 // the store's newest commit
	pools  string
	fence  uint64
	holder model.Holder
}

func (p *Projector) projectRest(v *view, r *model.Report) {
	for _, e := range v.Endpoints {
		from := endpointInputs{e.Record, e.Manifest, e.Prefix, e.IP, e.DescribedBy, e.IsBMC, e.Why, e.Lost()}
		p.keep(r, endpointFolder+e.Name+".yaml", from, func() any { return v.endpointDocument(e) })
	}
	for i := range v.Maintenances {
		m := &v.Maintenances[i]
		d := v.maintenanceDocument(m)
		p.keep(r, "servermaintenances/"+m.Manifest.Name+".yaml", maintenanceInputs{m.Manifest, d.Status}, func() any { return d })
	}
	for i := range v.ReadinessRules {
		rule := &v.ReadinessRules[i]
		from := readinessInputs{rule.Manifest, rule.Refused, rule.Servers, rule.Ready, fmt.Sprint(rule.Unready)}
		p.keep(r, "serverreadinessrules/"+rule.Name+".yaml", from, func() any { return readinessRuleDocument(rule) })
	}
	d := v.in.Desired
	from := revisionInputs{d.Source, d.VerifiedBy, v.in.Observed.Sequence, fmt.Sprint(ExhaustedPools(v.in.Pools)), r.Fence, r.Holder}
	p.keep(r, model.ReportRevision, from, func() any { return v.revisionDocument(r) })
	problems := v.problems()
	p.keep(r, model.ReportProblems, fmt.Sprint(problems), func() any {
		return shownProblems(problems)
	})
}

// keep shows the document of a path, made anew only when from changed, and returns its line
// of the page.
func (p *Projector) keep(r *model.Report, path string, from any, make func() any) row {
	old := p.rest[path]
	if old.doc == nil || old.from != from {
		old = p.made(path, from, old, make())
		p.rest[old.path] = old
	}
	r.Documents[old.path] = old.doc // the very same path, or each of very many is held twice
	return old.row
}

// made is a document made anew, or the one before where it says the same.
func (p *Projector) made(path string, from any, old projected, now any) projected {
	path = cmp.Or(old.path, path)
	doc := unlessSame(old.doc, now)
	if doc == old.doc {
		return projected{path, from, doc, old.row}
	}
	return projected{path, from, doc, rowOf(path, doc)}
}

// forget drops the documents that the report no longer shows.
func (p *Projector) forget(r *model.Report) {
	maps.DeleteFunc(p.rest, func(path string, _ projected) bool { return r.Documents[path] == nil })
	maps.DeleteFunc(p.drawn, func(path string, _ drawing) bool { return r.Documents[path] == nil })
	maps.DeleteFunc(p.servers, func(name model.ServerName, _ projected) bool {
		return r.Documents[serverFolder+string(name)+".yaml"] == nil
	})
}

// unlessSame is the document of an object, or the one before if it says the same.
func unlessSame(before *model.Document, now any) *model.Document {
	if before != nil && reflect.DeepEqual(before.Object, now) {
		return before
	}
	return &model.Document{Object: now}
}

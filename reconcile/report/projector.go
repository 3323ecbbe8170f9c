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
	made  map[string]projected       // by path
	texts map[string]*model.Document // by path
	shown []*Document                // of the report that is being made
}

type projected struct {
	path string
	from any
	doc  *model.Document
}

// Report projects an input and its plan onto the files of the status branch, and returns their
// documents as well. A Story adds the subject and the body of its commit.
func (p *Projector) Report(in *world.Input, result *plan.Result, fence uint64, holder model.Holder) (*model.Report, *Documents) {
	if p.made == nil {
		p.made, p.texts = make(map[string]projected), make(map[string]*model.Document)
	}
	v := newView(in, result)
	r := &model.Report{
		Revision: in.Desired.Revision, Fence: fence, Holder: holder,
		Documents: make(map[string]*model.Document),
	}
	p.projectServers(v, r)
	p.projectBMCs(v, r)
	p.projectClaims(v, r)
	p.projectRest(v, r)
	fleet := p.keep(r, model.ReportFleet, nil, func() any { return v.fleetDocument(r) }).Object.(*Fleet)
	docs := NewDocuments(fleet, p.shown)
	p.shown = nil
	pictures, _ := picturesOf(tilesOf(docs.List(Servers)))
	for _, pic := range pictures {
		p.show(r, pic.path, pic.svg())
	}
	p.show(r, model.ReportReadme, shownReadme(docs.readme(v.ObserveOnly.Message)))
	maps.DeleteFunc(p.made, func(path string, _ projected) bool { return r.Documents[path] == nil })
	maps.DeleteFunc(p.texts, func(path string, _ *model.Document) bool { return r.Documents[path] == nil })
	return r, docs
}

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
	lists     lists
}

// lists is what an object's overview has of the rest of the fleet.
type lists struct {
	by                     ways
	addresses, from, login string
}

func (v *view) listsOf(s serverView) lists {
	all, from := v.addressesOf(s)
	l := lists{by: v.waysOf(s.Why, s.Name, s.Record.Claim.Name), addresses: strings.Join(all, " "), from: from}
	if s.Claim != nil {
		l.login = s.loginUser(s.Claim)
	}
	return l
}

func (p *Projector) projectServers(v *view, r *model.Report) {
	for _, server := range v.Servers {
		s := v.server(server)
		from := serverInputs{
			rec: s.Record, facts: v.in.Observed.ServerFacts[s.Name], manifest: s.Manifest, boot: s.trace(),
			stage: s.Stage, why: s.Why, duplicate: madeOf(s.Duplicate), approval: madeOf(s.Approval),
			shared: strings.Join(v.sharedMACs(s.Record.MACs), " "),
			taints: madeOfTaints(s.Taints),
			claim:  s.Claim, lists: v.listsOf(s),
		}
		if b := v.bmcs[s.Record.BMC]; b != nil && !b.Found {
			from.bmc = b.Manifest
		}
		p.keep(r, Servers.Path(string(s.Name)), from, func() any { return v.serverDocument(s) })
		p.projectBoot(s, r)
	}
}

// bootInputs is all that a boot configuration is made from.
type bootInputs struct {
	server  model.ServerName
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
		return bootInputs{server: s.Name, claim: s.Claim, problem: s.Record.Boot.Problem, unarmed: madeOf(s.Unarmed)}
	}
	return bootInputs{
		server: s.Name, ticket: s.Record.Boot.Ticket, problem: s.Record.Boot.Problem, unbooted: madeOf(s.Unbooted),
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
	servers   string
	address   string
	duplicate string
	ip, mac   string // of its device
	problems  string
	isDefault bool // its credentials
}

func (p *Projector) projectBMCs(v *view, r *model.Report) {
	for _, b := range v.BMCs {
		from := bmcInputs{
			manifest: b.Manifest, rec: v.in.Observed.BMCs[b.Name], facts: v.in.Observed.BMCFacts[b.Name],
			why: b.Why, servers: joined(v.behind[b.Name]), address: b.Target.Address, duplicate: strings.Join(b.Duplicates, " "), problems: strings.Join(b.Problems, "\n"), isDefault: b.Target.Default,
		}
		if b.Endpoint != nil {
			from.ip, from.mac = b.Endpoint.IP, b.Endpoint.MAC
		}
		if b.Found {
			from.manifest, from.device, from.prefix = nil, b.Endpoint.Record, b.Endpoint.Prefix
		}
		p.keep(r, BMCs.Path(string(b.Name)), from, func() any { return v.bmcDocument(b) })
	}
}

func joined(names []model.ServerName) string {
	if len(names) == 1 {
		return string(names[0])
	}
	return fmt.Sprint(names)
}

// claimInputs is all that a claim's document is made from. There may be very many claims
// without a server, of which the rest is empty.
type claimInputs struct {
	manifest *model.ServerClaim
	rec      *model.ClaimRecord
	why      proposal.Why // of the claim, or of its server
	by       ways
	absent   any // model.Absence, which few have; nil = none
}

// servedInputs is all that the document of a claim with a server is made from.
type servedInputs struct {
	claimInputs
	server                                             *model.ServerRecord
	booted                                             *model.BootState
	pending, unconfirmed, exposed, approval, cloudInit proposal.Why
	lists                                              lists
	ran                                                bool
	keys                                               string     // reason of SSHKeysInstalled
	boot                                               bootInputs // of a ServerBootConfiguration
}

func (p *Projector) projectClaims(v *view, r *model.Report) {
	for _, c := range v.Claims {
		own := claimInputs{manifest: c.Manifest, rec: v.in.Observed.Claims[c.Name], why: c.Why, by: v.waysOf(c.Why, "", c.Name)}
		if a, listed := v.in.Desired.Absence(c.Name.Identity()); listed {
			own.absent = a
		}
		from := any(own)
		if s := v.servers[c.Server]; s != nil {
			own.why = s.Why
			served := servedInputs{
				claimInputs: own, server: s.Record, booted: v.in.Observed.BootStates[s.Name], pending: madeOf(s.Pending),
				unconfirmed: madeOf(s.Unconfirmed), exposed: madeOf(s.Exposed), approval: madeOf(s.Approval), cloudInit: madeOf(s.CloudInit), lists: v.listsOf(v.server(s)), ran: s.RanWhenLastRead,
			}
			served.keys, _ = v.server(s).keysProblem(c.Manifest)
			if c.Name.IsBootConfiguration() {
				served.boot = v.server(s).bootInputs()
			}
			from = served
		}
		p.keep(r, ClaimPath(c.Name), from, func() any { return v.claimDocument(c) })
	}
	for _, s := range v.Servers {
		if a, held := v.heldClaim(s); held {
			from := servedInputs{claimInputs: claimInputs{rec: v.in.Observed.Claims[s.Record.Claim.Name], absent: a}, server: s.Record}
			p.keep(r, ClaimPath(s.Record.Claim.Name), from, func() any { return v.heldClaimDocument(s, a) })
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

func (p *Projector) projectRest(v *view, r *model.Report) {
	for _, e := range v.Endpoints {
		from := endpointInputs{e.Record, e.Manifest, e.Prefix, e.IP, e.DescribedBy, e.IsBMC, e.Why, e.Lost()}
		p.keep(r, Endpoints.Path(e.Name), from, func() any { return v.endpointDocument(e) })
	}
	for i := range v.Maintenances {
		p.keep(r, Maintenances.Path(v.Maintenances[i].Manifest.Name), nil, func() any { return v.maintenanceDocument(&v.Maintenances[i]) })
	}
	for i := range v.ReadinessRules {
		p.keep(r, ReadinessRules.Path(v.ReadinessRules[i].Name), nil, func() any { return readinessRuleDocument(&v.ReadinessRules[i]) })
	}
}

// keep shows the document of a path. It is made again only if from changed; nil is made each time.
// A document that is equal to the one before stays the same one.
func (p *Projector) keep(r *model.Report, path string, from any, build func() any) *model.Document {
	old := p.made[path]
	if old.doc == nil || from == nil || old.from != from {
		path = cmp.Or(old.path, path) // the very same string, or each of very many is held twice
		now := build()
		if old.doc == nil || !reflect.DeepEqual(old.doc.Object, now) {
			old.doc = &model.Document{Object: now}
		}
		old.path, old.from = path, from
		p.made[path] = old
	}
	r.Documents[old.path] = old.doc
	if d, ok := old.doc.Object.(*Document); ok {
		p.shown = append(p.shown, d)
	}
	return old.doc
}

package reconcile

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"ingot/model"
)

// maxSubject is how long the first line of a commit message may be.
const maxSubject = 72

// Projector makes the reports of the status branch. It keeps the documents that
// it made: one whose inputs did not change is the same document again, so that
// nothing is written out twice. It is not for concurrent use.
type Projector struct {
	servers map[model.ServerName]projected
	rest    map[string]projected       // by path
	shown   map[model.ServerName]shown // by the last published report
	told    map[model.ServerName]shown // by the last report
	files   map[string]*model.Document // of the last published report
	written map[string]*model.Document // of the last report
	readme  *model.Document
}

// projected is a document and all that it was made from.
type projected struct {
	from any
	doc  *model.Document
}

// shown is what the last published report said of a server.
type shown struct {
	state model.ServerState
	claim model.ClaimName
}

// NewProjector returns a Projector that has made no report.
func NewProjector() *Projector {
	return &Projector{
		servers: make(map[model.ServerName]projected),
		rest:    make(map[string]projected),
		shown:   make(map[model.ServerName]shown),
	}
}

// serverInputs is all that a server's document is made from.
type serverInputs struct {
	rec      *model.ServerRecord
	facts    *model.ServerFacts
	probe    *model.ProbeReport
	spec     *model.Server
	bmc      *model.BMC
	progress *model.Progress
	wiping   *model.WipeProgress
	wipe     *model.WipeReport
	booted   *model.BootState
	why      Why
	twin     Why
	shared   string // its MAC addresses that others show, too
}

// Report projects in onto what the status branch shows.
func (p *Projector) Report(in *Input, fence uint64, holder model.Holder) *model.Report {
	v := newView(in)
	r := &model.Report{
		Revision: in.Desired.Revision, Fence: fence, Holder: holder, Version: in.Observed.Newest(),
		Documents: make(map[string]*model.Document),
	}
	p.projectServers(v, r)
	p.projectRest(v, r)
	p.forget(r)
	text := shownReadme(v.readme())
	if p.readme == nil || p.readme.Text != text {
		p.readme = &model.Document{Text: text}
	}
	r.Documents[model.ReportReadme] = p.readme
	p.written = r.Documents
	r.Subject, r.Body = p.story(v)
	return r
}

func (p *Projector) projectServers(v *view, r *model.Report) {
	for i, s := range v.servers {
		boot := s.bootFacts()
		from := serverInputs{
			rec: s.rec, facts: v.in.Observed.ServerFacts[s.name], probe: boot.probe, spec: s.spec,
			progress: boot.progress, wiping: boot.progressed, wipe: boot.wipe, booted: boot.booted, why: v.whys[i],
			twin: s.duplicate(), shared: strings.Join(v.sharedMACs(s.rec.MACs), " "),
		}
		if b := v.bmcBy[s.rec.BMC]; b != nil && !b.found {
			from.bmc = b.spec
		}
		old := p.servers[s.name]
		if old.doc == nil || old.from != any(from) {
			old = projected{from, unlessSame(old.doc, v.serverDocument(i))}
			p.servers[s.name] = old
		}
		r.Documents["servers/"+string(s.name)+".yaml"] = old.doc
		p.projectBoot(v, s, r)
	}
}

// projectBoot shows what a server boots, or is about to.
func (p *Projector) projectBoot(v *view, s *server, r *model.Report) {
	ns, name := s.bootConfigurationName()
	path := "serverbootconfigurations/" + ns + "/" + name + ".yaml"
	why := s.bootTrouble()
	switch {
	case why.Reason != "" || s.rec.State == model.StateReserved && s.claim != nil && !s.ticketShows():
		p.keep(r, path, [3]any{s.claim, s.rec.BootProblem, why}, func() any { return s.pendingBoot(why) })
	case s.ticketShows():
		from := [4]any{s.rec.Ticket, s.rec.BootProblem, s.progress(), v.in.Observed.BootStates[s.name]}
		p.keep(r, path, from, func() any { return s.bootConfiguration() })
	}
}

func (p *Projector) projectRest(v *view, r *model.Report) {
	for _, b := range v.bmcs {
		from := [8]any{b.spec, v.in.Observed.BMCs[b.name], b.facts, v.bmcWhy(b), len(v.behind[b.name]), b.target.Address, nil, b.duplicate()}
		if b.found { // its manifest is made anew each time, of these
			from[0], from[6] = b.endpoint.rec, b.endpoint.entry
		}
		p.keep(r, "bmcs/"+string(b.name)+".yaml", from, func() any { return v.bmcDocument(b) })
	}
	for name, c := range v.in.Desired.Claims {
		ns, n := model.SplitName(name)
		p.keep(r, "serverclaims/"+ns+"/"+n+".yaml", v.claimInputs(name, c), func() any { return v.claimDocument(name, c) })
	}
	for _, s := range v.servers {
		if a, held := v.heldClaim(s); held {
			ns, n := model.SplitName(s.rec.Claim)
			p.keep(r, "serverclaims/"+ns+"/"+n+".yaml", [4]any{s.rec, v.in.Observed.Claims[s.rec.Claim], v.whyOf(s), a}, func() any { return v.heldClaimDocument(s, a) })
		}
	}
	for _, e := range v.endpoints {
		from := [4]any{e.rec, e.spec, e.entry, [4]any{e.ip, e.lost, e.by, e.why}}
		p.keep(r, "endpoints/"+e.name+".yaml", from, func() any { return v.endpointDocument(e) })
	}
	for name, m := range v.in.Desired.Maintenances {
		d := v.maintenanceDocument(name, m)
		p.keep(r, "servermaintenances/"+name+".yaml", [2]any{m, d.Status}, func() any { return d })
	}
	d := v.in.Desired
	from := [4]any{d.Source, v.in.Observed.Fleet.Version, fmt.Sprint(exhausted(v.in.Pools)), [2]any{r.Fence, r.Holder}}
	p.keep(r, model.ReportRevision, from, func() any { return v.revisionDocument(r) })
	p.keep(r, model.ReportProblems, fmt.Sprint(d.Problems), func() any {
		return shownProblems(d.Problems)
	})
}

// claimInputs is all that a claim's document is made from.
func (v *view) claimInputs(name model.ClaimName, c *model.ServerClaim) any {
	rec := v.in.Observed.Claims[name]
	absent, _ := v.absence(name.Identity())
	if s := v.byName[v.served[name]]; s != nil {
		return [6]any{c, rec, s.rec, v.whyOf(s), v.in.Observed.BootStates[s.name], absent}
	}
	return [4]any{c, rec, v.unbound(c), absent}
}

// keep shows the document of a path, made anew only when from changed.
func (p *Projector) keep(r *model.Report, path string, from any, make func() any) {
	old := p.rest[path]
	if old.doc == nil || old.from != from {
		old = projected{from, unlessSame(old.doc, make())}
		p.rest[path] = old
	}
	r.Documents[path] = old.doc
}

// forget drops the documents that the report no longer shows.
func (p *Projector) forget(r *model.Report) {
	maps.DeleteFunc(p.rest, func(path string, _ projected) bool { return r.Documents[path] == nil })
	maps.DeleteFunc(p.servers, func(name model.ServerName, _ projected) bool {
		return r.Documents["servers/"+string(name)+".yaml"] == nil
	})
}

// story says what happened since the last published report.
func (p *Projector) story(v *view) (subject string, body []string) {
	to := make(map[model.ServerState]int)
	p.told = make(map[model.ServerName]shown, len(v.servers))
	for _, s := range v.servers {
		p.told[s.name] = shown{s.rec.State, s.rec.Claim}
		old, known := p.shown[s.name]
		if known && old == p.told[s.name] {
			continue
		}
		line := fmt.Sprintf("%s: %s", s.name, s.rec.State)
		if known {
			line = fmt.Sprintf("%s: %s → %s", s.name, old.state, s.rec.State)
		}
		switch {
		case s.rec.Claim != "":
			line += " for " + string(s.rec.Claim)
		case old.claim != "":
			line += ", was " + string(old.claim)
		}
		body = append(body, line)
		to[s.rec.State]++
	}
	switch {
	case len(body) == 0:
		return cut(p.news(v)), nil
	case len(body) == 1 && len(body[0]) <= maxSubject:
		return body[0], nil
	}
	subject = fmt.Sprintf("%s changed:", plural(len(body), "server"))
	for _, st := range model.ServerStates {
		if to[st] > 0 {
			subject += fmt.Sprintf(" %d → %s,", to[st], st)
		}
	}
	return cut(subject[:len(subject)-1]), body
}

func cut(s string) string {
	if r := []rune(s); len(r) > maxSubject {
		return string(r[:maxSubject-1]) + "…"
	}
	return s
}

// short is a revision with its hash cut to seven digits.
func short(r model.Revision) string {
	branch, hash, ok := strings.Cut(string(r), "@sha1:")
	if !ok || len(hash) < 7 {
		return string(r)
	}
	return branch + "@" + hash[:7]
}

// newsKinds are the folders of the status branch as a commit's subject names them.
var newsKinds = []struct{ folder, noun string }{
	{"servers/", "server"}, {"serverclaims/", "claim"}, {"bmcs/", "BMC"}, {"endpoints/", "endpoint"}, {model.ReportProblems, "problem file"},
}

// news says of what there is news though no server changed its state.
func (p *Projector) news(v *view) string {
	var parts []string
	for _, k := range newsKinds {
		n := 0
		for path, d := range p.written {
			if strings.HasPrefix(path, k.folder) && p.files[path] != d {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, plural(n, k.noun))
		}
	}
	if len(parts) == 0 {
		return "revision " + short(v.in.Desired.Revision)
	}
	return "news of " + strings.Join(parts, ", ")
}

// Published notes that the last report is on the status branch.
func (p *Projector) Published() { p.shown, p.files = p.told, p.written }

// versioned is a document's record with its version.
type versioned interface{ version() *model.Version }

// unlessSame is the document of an object, or the one before if only the version of its
// record is another: that is no news, and of both copies either is as good.
func unlessSame(before *model.Document, now any) *model.Document {
	if before == nil || before.Object == nil || reflect.TypeOf(before.Object) != reflect.TypeOf(now) {
		return &model.Document{Object: now}
	}
	old, isOld := before.Object.(versioned)
	fresh, isFresh := now.(versioned)
	if !isOld || !isFresh || old.version() == nil || fresh.version() == nil {
		return &model.Document{Object: now}
	}
	v := *fresh.version()
	*fresh.version() = *old.version()
	if reflect.DeepEqual(before.Object, now) {
		return before
	}
	*fresh.version() = v
	return &model.Document{Object: now}
}

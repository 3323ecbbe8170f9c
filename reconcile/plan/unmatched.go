package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
)

// likely is what people may have meant who named a server or a label that is not known.
// Each part is made when first needed.
type likely struct {
	servers      []string // what servers are called, here and in Git
	names        model.Guesses
	labels       model.LabelValues // of all servers
	labelGuesses model.Guesses
	guessed      map[string]string // of servers' names
}

// unknownServer says that Ingot knows no server of the name.
func (f *fleet) unknownServer(name string) string {
	says := "server " + name + " is not known"
	if f.in.Desired.Servers[model.ServerName(name)] != nil {
		return says + ": no machine matches the Server of that name in Git"
	}
	l := &f.likely
	if l.guessed == nil {
		l.guessed, l.names = make(map[string]string), model.Guesses{Left: model.MaxGuesses}
		for _, s := range f.servers {
			l.servers = append(l.servers, string(s.name))
		}
		for name := range f.in.Desired.Servers {
			l.servers = append(l.servers, string(name))
		}
		slices.Sort(l.servers)
		l.servers = slices.Compact(l.servers)
	}
	near, done := l.guessed[name]
	if !done {
		near = l.names.Near(name, l.servers)
		l.guessed[name] = near
	}
	return says + near
}

// serverLabelValues are the labels of all servers.
func (f *fleet) serverLabelValues() model.LabelValues {
	l := &f.likely
	if l.labels == nil {
		l.labels, l.labelGuesses = make(model.LabelValues), model.Guesses{Left: model.MaxGuesses}
		for _, s := range f.servers {
			l.labels.Add(f.serverLabels(s))
		}
	}
	return l.labels
}

// likelyLabel adds to why a claim has no server what label it may have meant by one that no
// server at all has.
func (f *fleet) likelyLabel(c *model.ServerClaim) string {
	if c.Spec.ServerSelector == nil || len(f.servers) == 0 {
		return ""
	}
	labels := f.serverLabelValues()
	if f.likely.labelGuesses.Spent() {
		return "" // of very many claims the first ones are helped
	}
	stray, near := labels.Stray(c.Spec.ServerSelector, &f.likely.labelGuesses)
	if near == "" {
		return ""
	}
	return "; no server has label " + stray + near
}

// unmatched warns of manifests that speak of servers which are not known, once each BMC was
// asked for its own.
func (f *fleet) unmatched() []model.Problem {
	if f.outdated() || slices.ContainsFunc(f.bmcs, (*bmcView).unasked) {
		return nil
	}
	d, unread := f.in.Desired, f.unread()
	var problems []model.Problem
	check := func(o model.Object) {
		for _, r := range o.Metadata().References {
			if r.To.Kind == model.KindServer && f.missing(r.To) {
				problems = append(problems, r.Problem(o, f.unknownServer(r.To.Name)+unread))
			}
		}
	}
	for _, c := range f.memory.claims {
		if c.namesServers {
			check(c.claim)
		}
	}
	inOrder(d.Maintenances, func(m *model.ServerMaintenance) { check(m) })
	inOrder(d.ReadinessRules, func(r *model.ServerReadinessRule) {
		labels := f.serverLabelValues()
		if stray, near := labels.Stray(r.Spec.ServerSelector, &f.likely.labelGuesses); stray != "" && len(f.servers) > 0 {
			problems = append(problems, warning(r, "spec.serverSelector", "no server has label "+stray+near))
		}
	})
	return append(problems, f.unmatchedServers(unread)...)
}

func inOrder[K cmp.Ordered, O any](all map[K]O, use func(O)) {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		use(all[k])
	}
}

// unasked reports whether a BMC has not been asked for its systems, or not answered yet.
func (b *bmcView) unasked() bool { return b.facts == nil && b.why.Reason == model.ReasonPending }

// missing reports whether a server that Git names is not known, nor hidden by what cannot be
// read.
func (f *fleet) missing(id model.Identity) bool {
	return f.server(f.resolve(id.Name)) == nil && !f.in.Desired.IsQuarantined(id) &&
		!slices.ContainsFunc(f.record.Unreadable, func(u model.UnreadableRecord) bool { return string(u.Server) == id.Name })
}

// unread adds to a warning that a server may be behind a BMC that has never been read.
func (f *fleet) unread() string {
	n := 0
	for _, b := range f.bmcs {
		if b.facts == nil {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return "; " + text.Plural(n, "BMC") + " could not be read yet"
}

// unmatchedServers warns of each Server that no machine matches.
func (f *fleet) unmatchedServers(unread string) []model.Problem {
	if len(f.specs) == len(f.in.Desired.Servers) {
		return nil // as good as always: each is of one machine
	}
	matched := make(map[*model.Server]bool, len(f.specs))
	for _, spec := range f.specs {
		matched[spec] = true
	}
	byUUID, names := make(map[string]model.ServerName, len(f.servers)), make([]string, len(f.servers))
	for i, s := range f.servers {
		byUUID[s.rec.UUID], names[i] = s.name, string(s.name)
	}
	uuids, guesses := slices.Sorted(maps.Keys(byUUID)), model.Guesses{Left: model.MaxGuesses}
	var problems []model.Problem
	inOrder(f.in.Desired.Servers, func(spec *model.Server) {
		if matched[spec] {
			return
		}
		uuid, field, says := spec.Spec.SystemUUID, "spec.systemUUID", ""
		var has model.ServerName
		for _, id := range model.UUIDVariants(uuid) {
			has = cmp.Or(has, byUUID[id])
		}
		switch s := f.server(model.ServerName(spec.Name)); {
		case uuid == "":
			field, says = "metadata.name", "no server is called so"+guesses.Near(spec.Name, names)
		case has != "":
			says = fmt.Sprintf("the machine with UUID %s is server %s, of which there is another manifest", uuid, has)
		case s != nil:
			says = fmt.Sprintf("no machine has UUID %s, server %s has %s", uuid, s.name, s.rec.UUID)
		default:
			says = "no machine has UUID " + uuid + guesses.Near(uuid, uuids)
		}
		problems = append(problems, warning(spec, field, "has no effect: "+says+unread))
	})
	return problems
}

func warning(o model.Object, field, message string) model.Problem {
	p := model.Problem{Severity: model.SeverityWarning, Object: o.Identity().String(), Field: field, Message: message}
	p.File, p.Line = o.Metadata().Position()
	return p
}

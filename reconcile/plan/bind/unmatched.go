package bind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
)

// likely finds the servers and labels that an unknown name may stand for.
type likely struct {
	servers      []string // all names, of Ingot and of Git; made when first needed
	names        model.Guesses
	guessed      map[string]string // by the unknown name of a server
	labels       model.LabelValues // of all servers; made when first needed
	labelGuesses model.Guesses
}

// UnknownServer says that no server of the name is known.
func (r *Result) UnknownServer(name string) string { return r.fleet.unknownServer(name) }

func (f *fleet) unknownServer(name string) string {
	says := "server " + name + " is not known"
	if f.Desired.Servers[model.ServerName(name)] != nil {
		return says + ": no machine matches the Server of that name in Git"
	}
	l := &f.likely
	if l.guessed == nil {
		l.guessed, l.names = make(map[string]string), model.Guesses{Left: model.MaxGuesses}
		for i := range f.Servers {
			l.servers = append(l.servers, string(f.Servers[i].Name))
		}
		for name := range f.Desired.Servers {
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

// labelValues are the labels of all servers.
func (f *fleet) labelValues() model.LabelValues {
	l := &f.likely
	if l.labels == nil {
		l.labels, l.labelGuesses = make(model.LabelValues), model.Guesses{Left: model.MaxGuesses}
		for i := range f.Servers {
			l.labels.Add(f.Servers[i].Labels)
		}
	}
	return l.labels
}

// likelyLabel is the hint that no server has a label that a claim requires, with the label that may
// be meant.
func (f *fleet) likelyLabel(c *model.ServerClaim) string {
	if c.Spec.ServerSelector == nil || len(f.Servers) == 0 {
		return ""
	}
	labels := f.labelValues()
	if f.likely.labelGuesses.Spent() {
		return "" // of very many claims the first ones get a hint
	}
	stray, near := labels.Stray(c.Spec.ServerSelector, &f.likely.labelGuesses)
	if near == "" {
		return ""
	}
	return "; no server has label " + stray + near
}

// Unmatched warns of manifests that name unknown servers or labels. Such a server may be behind
// one of the BMCs that were never read.
func (r *Result) Unmatched(unreadBMCs int) []model.Problem {
	f, d, unread := r.fleet, r.fleet.Desired, ""
	if unreadBMCs > 0 {
		unread = "; " + text.Plural(unreadBMCs, "BMC") + " could not be read yet"
	}
	var problems []model.Problem
	check := func(o model.Object) {
		for _, r := range o.Metadata().References {
			if r.To.Kind == model.KindServer && f.missing(r.To) {
				problems = append(problems, r.Problem(o, f.unknownServer(r.To.Name)+unread))
			}
		}
	}
	for i := range f.Claims {
		check(f.Claims[i].Manifest)
	}
	inOrder(d.Maintenances, func(m *model.ServerMaintenance) { check(m) })
	inOrder(d.ReadinessRules, func(r *model.ServerReadinessRule) {
		labels := f.labelValues()
		if stray, near := labels.Stray(r.Spec.ServerSelector, &f.likely.labelGuesses); stray != "" && len(f.Servers) > 0 {
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

// missing reports whether a server in Git is unknown, and neither its manifest nor its record is
// unreadable.
func (f *fleet) missing(id model.Identity) bool {
	_, known := f.at(f.resolve(id.Name))
	return !known && !f.Desired.IsQuarantined(id) &&
		!slices.ContainsFunc(f.Unreadable, func(u model.UnreadableRecord) bool { return string(u.Server) == id.Name })
}

// unmatchedServers warns of each Server that no machine matches.
func (f *fleet) unmatchedServers(unread string) []model.Problem {
	byUUID, names, matched := make(map[string]model.ServerName), make([]string, len(f.Servers)), 0
	for i := range f.Servers {
		if f.Servers[i].Manifest != nil {
			matched++
		}
	}
	if matched == len(f.Desired.Servers) {
		return nil
	}
	for i := range f.Servers {
		byUUID[f.Servers[i].UUID], names[i] = f.Servers[i].Name, string(f.Servers[i].Name)
	}
	uuids, guesses := slices.Sorted(maps.Keys(byUUID)), model.Guesses{Left: model.MaxGuesses}
	var problems []model.Problem
	inOrder(f.Desired.Servers, func(spec *model.Server) {
		if at, known := f.at(f.resolve(spec.Name)); known && f.Servers[at].Manifest == spec {
			return
		}
		uuid, field, says := spec.Spec.SystemUUID, "spec.systemUUID", ""
		var has model.ServerName
		for _, id := range model.UUIDVariants(uuid) {
			has = cmp.Or(has, byUUID[id])
		}
		at, known := f.at(model.ServerName(spec.Name))
		switch {
		case uuid == "":
			field, says = "metadata.name", "no server is called so"+guesses.Near(spec.Name, names)
		case has != "":
			says = fmt.Sprintf("the machine with UUID %s is server %s, of which there is another manifest", uuid, has)
		case known:
			says = fmt.Sprintf("no machine has UUID %s, server %s has %s", uuid, spec.Name, f.Servers[at].UUID)
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

package bind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
)

// likely finds the servers and labels that an unknown name may stand for. All is made when first needed.
type likely struct {
	servers                                   []string          // all names, of Ingot and of Git
	guessed                                   map[string]string // by the unknown name of a server
	labels                                    model.LabelValues // of all servers
	serverGuesses, labelGuesses, imageGuesses model.Guesses
}

// UnknownServer says that no server of the name is known.
func (f *Fleet) UnknownServer(name string) string {
	says := "server " + name + " is not known"
	if f.Desired.Servers[model.ServerName(name)] != nil {
		return says + ": no machine matches the Server of that name in Git"
	}
	l := &f.likely
	if l.guessed == nil {
		l.guessed = make(map[string]string)
		for _, s := range f.Servers {
			l.servers = append(l.servers, string(s.Name))
		}
		for name := range f.Desired.Servers {
			l.servers = append(l.servers, string(name))
		}
		slices.Sort(l.servers)
		l.servers = slices.Compact(l.servers)
	}
	near, done := l.guessed[name]
	if !done {
		near = l.serverGuesses.Near(name, l.servers)
		l.guessed[name] = near
	}
	return says + near
}

func (f *Fleet) labels() model.LabelValues {
	l := &f.likely
	if l.labels == nil {
		l.labels = make(model.LabelValues)
		for _, s := range f.Servers {
			l.labels.Add(s.Labels)
		}
	}
	return l.labels
}

// Unmatched warns of manifests that name unknown servers or labels: such a server may be behind an unread BMC.
func (f *Fleet) Unmatched(unreadBMCs int) (problems []model.Problem) {
	unread := ""
	if unreadBMCs > 0 {
		unread = "; " + text.Plural(unreadBMCs, "BMC") + " could not be read yet"
	}
	check := func(o model.Object) {
		for _, r := range o.Metadata().References {
			if r.To.Kind == model.KindServer && f.missing(r.To) {
				problems = append(problems, r.Problem(o, f.UnknownServer(r.To.Name)+unread))
			}
		}
	}
	for _, c := range f.Claims {
		check(c.Manifest)
	}
	inOrder(f.Desired.Maintenances, func(m *model.ServerMaintenance) { check(m) })
	inOrder(f.Desired.ReadinessRules, func(r *model.ServerReadinessRule) {
		if stray, near := f.labels().Stray(r.Spec.ServerSelector, &f.likely.labelGuesses); stray != "" && len(f.Servers) > 0 {
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

// missing reports whether a server in Git is unknown, and neither its manifest nor its record is unreadable.
func (f *Fleet) missing(id model.Identity) bool {
	return f.find(id.Name) < 0 && !f.Desired.IsQuarantined(id) &&
		!slices.ContainsFunc(f.Unreadable, func(u model.UnreadableRecord) bool { return string(u.Server) == id.Name })
}

func (f *Fleet) unmatchedServers(unread string) (problems []model.Problem) {
	matched := 0
	for _, s := range f.Servers {
		if s.Manifest != nil {
			matched++
		}
	}
	if matched == len(f.Desired.Servers) {
		return nil
	}
	byUUID, names := make(map[string]model.ServerName), make([]string, len(f.Servers))
	for i, s := range f.Servers {
		byUUID[s.Record.UUID], names[i] = s.Name, string(s.Name)
	}
	uuids, guesses := slices.Sorted(maps.Keys(byUUID)), model.Guesses{Left: model.MaxGuesses}
	inOrder(f.Desired.Servers, func(spec *model.Server) {
		s := f.server(spec.Name)
		if s != nil && s.Manifest == spec {
			return
		}
		uuid, field, says := spec.Spec.SystemUUID, "spec.systemUUID", ""
		var has model.ServerName
		for _, id := range model.UUIDVariants(uuid) {
			has = cmp.Or(has, byUUID[id])
		}
		switch {
		case uuid == "":
			field, says = "metadata.name", "no server is called so"+guesses.Near(spec.Name, names)
		case has != "":
			says = fmt.Sprintf("the machine with UUID %s is server %s, of which there is another manifest", uuid, has)
		case s != nil:
			says = fmt.Sprintf("no machine has UUID %s, server %s has %s", uuid, spec.Name, s.Record.UUID)
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

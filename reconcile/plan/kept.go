package plan

import "ingot/model"

// serverKept is what a Memory keeps of a server: what was found to be so of objects that never
// change, and holds of nothing but them.
type serverKept struct {
	// shown is what asBMCShows held of, installed what current held of.
	shown struct {
		rec   *model.ServerRecord
		facts *model.ServerFacts
		spec  *model.Server
	}
	installed struct {
		rec     *model.ServerRecord
		claim   *model.ServerClaim
		secrets map[model.ObjectName]*model.Secret
	}
	judged *Server // by the last plan
}

// keptOf is what is kept of some objects, in the order of their names.
type keptOf[K comparable, V any] struct {
	names []K
	all   []V
}

// of returns what is kept, which begins anew with other objects.
func (k *keptOf[K, V]) of(names []K) []V {
	if !sameList(k.names, names) {
		k.names, k.all = names, make([]V, len(names))
	}
	return k.all
}

// asBMCShows is that of the server.
func (k *serverKept) asBMCShows(s *server) bool {
	if was := &k.shown; was.rec == s.rec && was.facts == s.facts && was.spec == s.spec {
		return true
	}
	if !s.asBMCShows() {
		return false
	}
	if s.rec == s.stored { // one that is being made may yet become another
		k.shown.rec, k.shown.facts, k.shown.spec = s.rec, s.facts, s.spec
	}
	return true
}

// isCurrent is current of the server.
func (k *serverKept) isCurrent(s *server) bool {
	secrets := s.fleet.in.Desired.Secrets
	if was := &k.installed; was.rec == s.rec && was.claim == s.claim && sameMap(was.secrets, secrets) {
		return true
	}
	if !s.current() {
		return false
	}
	if s.rec == s.stored {
		k.installed.rec, k.installed.claim, k.installed.secrets = s.rec, s.claim, secrets
	}
	return true
}

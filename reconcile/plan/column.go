package plan

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// column is what a map has for each of some names, in their order; the zero value where it
// has nothing. This and what follows is kept by a Memory for as long as the map and the list that
// it was made of are the very same ones, whatever is in them: nobody changes what an Input points
// to. Both are held on to, so no other one can come to be at the same address.
type column[K comparable, V any] struct {
	names []K
	from  map[K]V
	all   []V
}

// of returns the column. Nobody changes it.
func (c *column[K, V]) of(names []K, from map[K]V) []V {
	if !sameList(c.names, names) || !sameMap(c.from, from) {
		all := make([]V, len(names))
		for i, name := range names {
			all[i] = from[name]
		}
		c.names, c.from, c.all = names, from, all
	}
	return c.all
}

// places are where in a list each of its names stands.
type places[K comparable] struct {
	names []K
	at    map[K]int
}

// of returns the places. Nobody changes them.
func (p *places[K]) of(names []K) map[K]int {
	if p.at == nil || !sameList(p.names, names) {
		at := make(map[K]int, len(names))
		for i, name := range names {
			at[name] = i
		}
		p.names, p.at = names, at
	}
	return p.at
}

// sameList reports whether two lists are one.
func sameList[E any](a, b []E) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sameMap reports whether two maps are one.
func sameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// keys are those of a map in their order.
type keys[K cmp.Ordered, V any] struct {
	from map[K]V
	all  []K
}

// of returns the keys: the very same list as before, if they are the same. Nobody changes it.
func (n *keys[K, V]) of(from map[K]V) []K {
	if sameMap(n.from, from) {
		return n.all
	}
	same := len(n.all) == len(from)
	for i := 0; same && i < len(n.all); i++ {
		_, same = from[n.all[i]]
	}
	if !same {
		n.all = slices.Sorted(maps.Keys(from))
	}
	n.from = from
	return n.all
}

// nowhere is the place of what is not in a list.
const nowhere = -1

// links are the places in a list of what each of some records names.
type links[K comparable] struct {
	recs  []*model.ServerRecord
	names []K
	all   []int
}

// of returns the links; at are the places of the names. Nobody changes them.
func (l *links[K]) of(recs []*model.ServerRecord, names []K, at map[K]int, named func(*model.ServerRecord) K) []int {
	if !sameList(l.recs, recs) || !sameList(l.names, names) {
		all := make([]int, len(recs))
		for i, rec := range recs {
			place, known := at[named(rec)]
			if !known {
				place = nowhere
			}
			all[i] = place
		}
		l.recs, l.names, l.all = recs, names, all
	}
	return l.all
}

// lookups are what was looked up by name.
type lookups struct {
	claimPlaces  places[model.ClaimName]
	claimRecords column[model.ClaimName, *model.ClaimRecord]

	serverPlaces places[model.ServerName]
	records      column[model.ServerName, *model.ServerRecord]
	stored       column[model.ServerName, *model.ServerRecord]
	manifests    column[model.ServerName, *model.Server]
	facts        column[model.ServerName, *model.ServerFacts]
	readings     column[model.ServerName, proposal.Reading]
	serverBMCs   links[model.BMCName]
	serverClaims links[model.ClaimName]
	matched      matchedSpecs

	bmcPlaces    places[model.BMCName]
	bmcManifests column[model.BMCName, *model.BMC]
	bmcRecords   column[model.BMCName, *model.BMCRecord]
	bmcFacts     column[model.BMCName, *model.BMCFacts]
	bmcRead      column[model.BMCName, time.Time]
	settled      settledBMCs
}

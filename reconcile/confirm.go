package reconcile

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
)

// sighting is what a BMC showed of its systems that nothing is made of yet.
type sighting struct {
	at      time.Time
	systems []model.SystemFact
}

// confirmed reports whether a reading of a BMC is to be believed: it contradicts no
// record, or says what is believed already, or what the reading before it said.
func (l *Loop) confirmed(facts *model.BMCFacts, o *model.Observed) bool {
	known := o.BMCFacts[facts.Name]
	if known != nil && sameSystems(known.Systems, facts.Systems) || !contradicts(facts, o.Servers) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, seen := l.sightings[facts.Name]
	return seen && sameSystems(before.systems, facts.Systems)
}

// contradicts reports whether a BMC shows no system, or another machine, in the place of a server behind it. One
// reading is not enough to believe it, because BMCs show such things while they start.
func contradicts(facts *model.BMCFacts, servers map[model.ServerName]*model.ServerRecord) bool {
	for _, rec := range servers {
		if rec.BMC == facts.Name && bmcs.ShownAs(facts, rec) != bmcs.ShownItself {
			return true
		}
	}
	return false
}

// sameSystems reports whether two readings show the same machines in the same places.
func sameSystems(a, b []model.SystemFact) bool {
	return slices.EqualFunc(a, b, func(a, b model.SystemFact) bool {
		return a.URI == b.URI && a.UUID == b.UUID && a.Board == b.Board && a.Unread == b.Unread
	})
}

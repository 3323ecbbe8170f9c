package reconcile

import (
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
	if known != nil && bmcs.SameSystems(known.Systems, facts.Systems) || !bmcs.Contradicts(facts, o.Servers) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, seen := l.sightings[facts.Name]
	return seen && bmcs.SameSystems(before.systems, facts.Systems)
}

package reconcile

import (
	"slices"
	"time"

	"ingot/model"
)

// sighting is what a BMC showed of its systems that nothing is made of yet.
type sighting struct {
	at      time.Time
	systems []model.SystemFact
}

// contradicts reports whether what a BMC shows is not what is recorded of a server
// behind it: its system is not there, or is another machine. BMCs say such things while
// they start, so one reading is not enough to believe it.
func contradicts(facts *model.BMCFacts, servers map[model.ServerName]*model.ServerRecord) bool {
	for _, rec := range servers {
		if rec.BMC == facts.Name && shownAs(facts, rec) != shownItself {
			return true
		}
	}
	return false
}

// place is what a BMC shows where a server is recorded to be.
type place int

const (
	shownItself place = iota
	shownNothing
	shownUnread  // a system that could not be read
	shownUnnamed // a system without a UUID, or what else told it
	shownOther   // another machine
)

// shownAs returns what a BMC shows where a server is recorded to be.
func shownAs(facts *model.BMCFacts, rec *model.ServerRecord) place {
	i := slices.IndexFunc(facts.Systems, func(s model.SystemFact) bool { return s.URI == rec.SystemURI })
	switch {
	case i < 0:
		return shownNothing
	case facts.Systems[i].Unread:
		return shownUnread
	case isMachine(facts.Systems[i], rec):
		return shownItself
	case facts.Systems[i].UUID == "" && (rec.Board == nil || facts.Systems[i].Board.SerialNumber == ""):
		return shownUnnamed
	}
	return shownOther
}

// sameSystems reports whether two readings show the same machines in the same places.
func sameSystems(a, b []model.SystemFact) bool {
	return slices.EqualFunc(a, b, func(a, b model.SystemFact) bool {
		return a.URI == b.URI && a.UUID == b.UUID && a.Board == b.Board && a.Unread == b.Unread
	})
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

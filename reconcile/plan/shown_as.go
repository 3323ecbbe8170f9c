package plan

import (
	"slices"

	"ingot/model"
)

// Contradicts reports whether what a BMC shows is not what is recorded of a server
// behind it: its system is not there, or is another machine. BMCs say such things while
// they start, so one reading is not enough to believe it.
func Contradicts(facts *model.BMCFacts, servers map[model.ServerName]*model.ServerRecord) bool {
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
	shownUnnamed // a system without a UUID, or anything else that identifies it
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

// SameSystems reports whether two readings show the same machines in the same places.
func SameSystems(a, b []model.SystemFact) bool {
	return slices.EqualFunc(a, b, func(a, b model.SystemFact) bool {
		return a.URI == b.URI && a.UUID == b.UUID && a.Board == b.Board && a.Unread == b.Unread
	})
}

package bmcs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// checkIdentity returns why the BMC that answered at a new address is not the known one (B34); all are the
// known BMCs, to name the one that it is. A value that one of the two lacks is not compared. Then the
// certificate and the UUIDs of the systems identify the BMC.
func checkIdentity(address string, known, seen *model.BMCFacts, all map[model.BMCName]*model.BMCFacts) *proposal.Failure {
	if known == nil || !differ(known, seen) {
		return nil
	}
	is := ""
	for name, other := range all {
		if name != known.Name && other.UUID != "" && other.UUID == seen.UUID && (is == "" || string(name) < is) {
			is = string(name)
		}
	}
	if is != "" {
		is = ", which is BMC " + is
	}
	return &proposal.Failure{Kind: proposal.FailureUndone, Reason: model.ReasonIdentityMismatch, Text: fmt.Sprintf("at %s answers the BMC with %s%s, and not the one with %s: nothing is done to its servers until that one answers; if it was replaced, set annotation %s: %s#1 on BMC %s in Git",
		address, identityText(seen), is, identityText(known), model.AnnotationOperation, model.OperationRetry, known.Name)}
}

// isAnother reports whether facts are those of another BMC than its manifest names by UUID. A BMC without
// a UUID may be any.
func isAnother(uuid string, facts *model.BMCFacts) bool {
	return uuid != "" && facts != nil && facts.UUID != "" && !model.SameUUID(uuid, facts.UUID)
}

// IsAnother reports whether another BMC answers than Git names.
func (b *BMC) IsAnother() bool { return isAnother(b.Manifest.Spec.BMCUUID, b.Facts) }

// differ reports whether the facts are those of two BMCs, by UUID or else by serial number.
func differ(a, b *model.BMCFacts) bool {
	if a.UUID != "" && b.UUID != "" {
		return !model.SameUUID(a.UUID, b.UUID)
	}
	return a.SerialNumber != "" && b.SerialNumber != "" && a.SerialNumber != b.SerialNumber
}

func identityText(f *model.BMCFacts) string {
	return fmt.Sprintf("UUID %s and serial number %s", cmp.Or(f.UUID, "unknown"), cmp.Or(f.SerialNumber, "unknown"))
}

// Contradicts reports whether a BMC shows something else than a record of a server behind it: no system in
// its place, or another machine. One reading is not enough to believe it, because BMCs show such things
// while they start.
func Contradicts(facts *model.BMCFacts, servers map[model.ServerName]*model.ServerRecord) bool {
	for _, rec := range servers {
		if rec.BMC == facts.Name && ShownAs(facts, rec) != ShownItself {
			return true
		}
	}
	return false
}

// Place is what a BMC shows in the place of a server.
type Place int

// The contents of a place.
const (
	ShownItself Place = iota
	ShownNothing
	ShownUnread  // a system that could not be read
	ShownUnnamed // a system without a UUID, or anything else that identifies it
	ShownOther   // another machine
)

// ShownAs returns what a BMC shows in the place of a server.
func ShownAs(facts *model.BMCFacts, rec *model.ServerRecord) Place {
	i := slices.IndexFunc(facts.Systems, func(s model.SystemFact) bool { return s.URI == rec.SystemURI })
	switch {
	case i < 0:
		return ShownNothing
	case facts.Systems[i].Unread:
		return ShownUnread
	case IsMachine(facts.Systems[i], rec):
		return ShownItself
	case facts.Systems[i].UUID == "" && (rec.Board == nil || facts.Systems[i].Board.SerialNumber == ""):
		return ShownUnnamed
	}
	return ShownOther
}

// IsMachine reports whether a system is a server's machine. A system without a UUID is identified by its
// board, if that is known.
func IsMachine(sys model.SystemFact, rec *model.ServerRecord) bool {
	if sys.UUID == "" && rec.Board != nil {
		return sys.Board == *rec.Board
	}
	return sys.UUID == rec.UUID
}

// SameSystems reports whether two readings show the same machines in the same places.
func SameSystems(a, b []model.SystemFact) bool {
	return slices.EqualFunc(a, b, func(a, b model.SystemFact) bool {
		return a.URI == b.URI && a.UUID == b.UUID && a.Board == b.Board && a.Unread == b.Unread
	})
}

// SameURI reports whether two spellings are of one resource: services differ in a slash at the end, and in
// capitals.
func SameURI(a, b string) bool { return strings.EqualFold(path.Clean(a), path.Clean(b)) }

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

// checkIdentity returns why the BMC that answered at a new address is not the known one (B34). A value that one of
// the two lacks is not compared: then the certificate and the UUIDs of the systems identify the BMC.
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

// isAnother reports whether facts are those of another BMC than its manifest names by UUID.
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

// IsMachine reports whether a system is a server's machine: by UUID, or by its board if it has none.
func IsMachine(sys model.SystemFact, rec *model.ServerRecord) bool {
	if sys.UUID == "" && rec.Board != nil {
		return sys.Board == *rec.Board
	}
	return sys.UUID == rec.UUID
}

// SameURI compares resources: services differ in a slash at the end, and in capitals.
func SameURI(a, b string) bool { return strings.EqualFold(path.Clean(a), path.Clean(b)) }

// OwnSystem is the system that is the Server within which a BMC is described, if that Server gives no UUID:
// the one with its systemURI, or else the only one. It is nil for other BMCs.
func (s *Set) OwnSystem(b *BMC) *model.SystemFact {
	if b == nil || b.Manifest.Within == "" || b.Facts == nil {
		return nil
	}
	server := s.in.Desired.Servers[b.Manifest.Within]
	if server == nil || server.Spec.SystemUUID != "" || server.Spec.SystemURI == "" && len(b.Facts.Systems) != 1 {
		return nil
	}
	i := slices.IndexFunc(b.Facts.Systems, func(sys model.SystemFact) bool {
		return server.Spec.SystemURI == "" || SameURI(server.Spec.SystemURI, sys.URI)
	})
	if i < 0 {
		return nil
	}
	return &b.Facts.Systems[i]
}

// withinProblem says why no system of a BMC is the Server that describes it; "" = one is, or none is known.
func (s *Set) withinProblem(b *BMC) string {
	if b.Manifest.Within == "" || b.Facts == nil || len(b.Facts.Systems) == 0 || s.OwnSystem(b) != nil {
		return ""
	}
	server := s.in.Desired.Servers[b.Manifest.Within]
	is := func(sys model.SystemFact) bool {
		return sys.UUID == "" || model.SameUUID(sys.UUID, server.Spec.SystemUUID)
	}
	switch {
	case server == nil || server.Spec.SystemUUID != "" && slices.ContainsFunc(b.Facts.Systems, is):
		return ""
	case server.Spec.SystemUUID != "":
		return fmt.Sprintf("none of its systems has spec.systemUUID %s of Server %s (%s), which describes it",
			server.Spec.SystemUUID, server.Name, server.Source)
	case server.Spec.SystemURI != "":
		return fmt.Sprintf("it shows no system %s, which Server %s (%s) says that it is", server.Spec.SystemURI, server.Name, server.Source)
	}
	return fmt.Sprintf("it shows %d systems: say by spec.systemUUID or spec.systemURI which is Server %s (%s)",
		len(b.Facts.Systems), server.Name, server.Source)
}

// noteTaken stops requests to a BMC within a Server at an address that another BMC in Git has.
func (s *Set) noteTaken() {
	has := make(map[string]model.BMCName)
	within := slices.ContainsFunc(s.BMCs, func(b *BMC) bool { return b.Manifest.Within != "" })
	for _, b := range s.BMCs {
		if within && b.Manifest.Within == "" && b.Target.Address != "" {
			has[b.Target.Address] = b.Name
		}
	}
	for _, b := range s.BMCs {
		at := b.Target.Address
		if b.Manifest.Within == "" || at == "" {
			continue
		}
		if has[at] == "" {
			has[at] = b.Name
			continue
		}
		b.taken = true
		b.Why = b.why(model.ReasonAddressNotAllowed, fmt.Sprintf("BMC %s has the address %s, so nothing is sent there for spec.bmc of "+
			"Server %s (%s): correct one of them", has[at], at, b.Name, b.Manifest.Source), proposal.RackOperator)
	}
}

package plan

import (
	"cmp"
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// checkIdentity returns why who answered at a new address is not the BMC that is
// known (B34); all are the BMCs that are known, to say which one it is. What one of
// the two does not say cannot differ: then the certificate and the UUIDs of the
// machines behind it are what tells them apart.
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

// isAnother reports whether facts are those of another BMC than its manifest names by its
// UUID. One that shows none may be any.
func isAnother(uuid string, facts *model.BMCFacts) bool {
	return uuid != "" && facts != nil && facts.UUID != "" && !model.SameUUID(uuid, facts.UUID)
}

// isAnother reports whether another BMC answers than Git names.
func (b *bmcView) isAnother() bool { return isAnother(b.spec.Spec.BMCUUID, b.facts) }

// namedOtherwise says that another BMC answers than Git names.
func (b *bmcView) namedOtherwise() proposal.Why {
	if !b.isAnother() {
		return proposal.Why{}
	}
	return proposal.Why{Reason: model.ReasonIdentityMismatch, Message: fmt.Sprintf("at %s answers the BMC with UUID %s, and spec.bmcUUID of BMC %s (%s) is %s: nothing "+
		"is done to its servers until these agree; correct bmcUUID in Git, or where the BMC is looked for",
		b.rec.Address, b.facts.UUID, b.name, b.spec.Source, b.spec.Spec.BMCUUID), Since: b.rec.Since, Actor: proposal.RackOperator}
}

// differ reports whether the facts are those of two BMCs. A UUID decides, or else
// the serial number.
func differ(a, b *model.BMCFacts) bool {
	if a.UUID != "" && b.UUID != "" {
		return !model.SameUUID(a.UUID, b.UUID)
	}
	return a.SerialNumber != "" && b.SerialNumber != "" && a.SerialNumber != b.SerialNumber
}

func identityText(f *model.BMCFacts) string {
	return fmt.Sprintf("UUID %s and serial number %s", cmp.Or(f.UUID, "unknown"), cmp.Or(f.SerialNumber, "unknown"))
}

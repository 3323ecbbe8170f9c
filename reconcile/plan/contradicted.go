package plan

import (
	"fmt"
	"path"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// contradiction is what of a server is not as Git says of it.
type contradiction int

const (
	contradictedNowhere contradiction = iota
	contradictedUUID                  // the server of its name is another machine
	contradictedBMC                   // another BMC shows it
	contradictedURI                   // its BMC shows it in another place
)

// contradiction finds what is not as Git says.
func (f *fleet) contradiction(s *server) contradiction {
	switch {
	case f.otherUUID[s.name] != nil:
		return contradictedUUID
	case s.spec == nil:
		return contradictedNowhere
	}
	if said := s.spec.Behind(); said != "" && f.areTwo(said, s.rec.BMC) {
		return contradictedBMC
	}
	if uri := s.spec.Spec.SystemURI; uri != "" && !sameURI(uri, s.rec.SystemURI) {
		return contradictedURI
	}
	return contradictedNowhere
}

func (f *fleet) isContradicted(s *server) bool { return f.contradiction(s) != contradictedNowhere }

// contradicted leaves a server alone that is not what Git says of it: which machine, behind
// which BMC, and where there. Somebody may have had another machine in mind.
func (s *server) contradicted() (Step, bool) {
	m, says := s.spec, ""
	switch s.fleet.contradiction(s) {
	case contradictedUUID:
		other := s.fleet.otherUUID[s.name]
		m = other.spec
		says = fmt.Sprintf("spec.systemUUID %s, and %s, while the server of this name has UUID %s", m.Spec.SystemUUID, other.whose(), s.rec.UUID)
	case contradictedBMC:
		says = fmt.Sprintf("that it is behind BMC %s, and BMC %s shows it", m.Behind(), s.rec.BMC)
	case contradictedURI:
		says = fmt.Sprintf("that it is system %s, and BMC %s shows it as %s", m.Spec.SystemURI, s.rec.BMC, s.rec.SystemURI)
	case contradictedNowhere:
		return Step{}, false
	}
	return s.rest(s.whySince(model.ReasonIdentityMismatch, fmt.Sprintf("Server %s in Git (%s) says %s: nothing is done to it "+
		"until these agree; correct the manifest, or where the machine is", m.Name, m.Source, says), proposal.RackOperator)), true
}

// otherUUID is a manifest of another UUID than that of the server of its name, and the server
// that has that UUID, "" if none has.
type otherUUID struct {
	spec *model.Server
	of   model.ServerName
}

func (o *otherUUID) whose() string {
	if o.of == "" {
		return "no server has that"
	}
	return fmt.Sprintf("server %s has that", o.of)
}

// areTwo reports whether two names are those of different BMCs. One that nobody knows is not
// any, and a device is the BMC in Git that describes it.
func (f *fleet) areTwo(said, is model.BMCName) bool {
	a, b := f.bmc(said), f.bmc(is)
	if a == nil || b == nil || a == b || a.endpoint != nil && a.endpoint == b.endpoint {
		return false
	}
	return a.target.Address == "" || a.target.Address != b.target.Address
}

// sameURI reports whether two spellings are of one resource: services differ in what they do
// about a slash at the end, and about capitals.
func sameURI(a, b string) bool { return strings.EqualFold(path.Clean(a), path.Clean(b)) }

package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ingot/model"
)

// contradicted leaves a server alone that is not what Git says of it: which machine, behind
// which BMC, and where there. Somebody may have had another machine in mind.
func (s *server) contradicted() (Step, bool) {
	says, is := s.fleet.contradiction(s)
	if says == "" {
		return Step{}, false
	}
	m := s.spec
	if m == nil {
		m = s.fleet.otherUUID[s.name]
	}
	return s.rest(s.whySince(model.ReasonIdentityMismatch, fmt.Sprintf("Server %s in Git (%s) says %s, and %s: nothing is done to it "+
		"until these agree; correct the manifest, or where the machine is", m.Name, m.Source, says, is), RackOperator)), true
}

func (f *fleet) isContradicted(s *server) bool {
	says, _ := f.contradiction(s)
	return says != ""
}

// contradiction is what Git says of a server that is not so, and what is; "" if all is.
func (f *fleet) contradiction(s *server) (says, is string) {
	if m := f.otherUUID[s.name]; m != nil {
		return "spec.systemUUID " + m.Spec.SystemUUID, fmt.Sprintf("%s, while the server of this name has UUID "+
			"%s", f.whose(m.Spec.SystemUUID), s.rec.UUID)
	}
	if s.spec == nil {
		return "", ""
	}
	if said := s.spec.Behind(); said != "" && f.areTwo(said, s.rec.BMC) {
		return "that it is behind BMC " + string(said), fmt.Sprintf("BMC %s shows it", s.rec.BMC)
	}
	if uri := s.spec.Spec.SystemURI; uri != "" && !sameURI(uri, s.rec.SystemURI) {
		return "that it is system " + uri, fmt.Sprintf("BMC %s shows it as %s", s.rec.BMC, s.rec.SystemURI)
	}
	return "", ""
}

// whose says which server has a UUID.
func (f *fleet) whose(uuid string) string {
	for _, name := range slices.Sorted(maps.Keys(f.in.Observed.Servers)) {
		if model.SameUUID(f.in.Observed.Servers[name].UUID, uuid) {
			return fmt.Sprintf("server %s has that", name)
		}
	}
	return "no server has that"
}

// areTwo reports whether two names are those of different BMCs. One that nobody knows is not
// any, and a device is the BMC in Git that describes it.
func (f *fleet) areTwo(said, is model.BMCName) bool {
	a, b := f.bmcBy[said], f.bmcBy[is]
	if a == nil || b == nil || a == b || a.endpoint != nil && a.endpoint == b.endpoint {
		return false
	}
	return a.target.Address == "" || a.target.Address != b.target.Address
}

// sameURI reports whether two spellings are of one resource: services differ in what they do
// about a slash at the end, and about capitals.
func sameURI(a, b string) bool { return strings.EqualFold(path.Clean(a), path.Clean(b)) }

package world

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
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
func (f *World) contradiction(s *Server) contradiction {
	switch {
	case f.otherUUID[s.Name] != nil:
		return contradictedUUID
	case s.Manifest == nil:
		return contradictedNowhere
	}
	if said := s.Manifest.Behind(); said != "" && areTwo(f, said, s.Record.BMC) {
		return contradictedBMC
	}
	if uri := s.Manifest.Spec.SystemURI; uri != "" && !bmcs.SameURI(uri, s.Record.SystemURI) {
		return contradictedURI
	}
	return contradictedNowhere
}

func (f *World) isContradicted(s *Server) bool { return f.contradiction(s) != contradictedNowhere }

// contradictedWhy is why a server is left alone that does not match its manifest: its UUID, its BMC or
// its place behind that differ. The author of the manifest may have meant another machine.
func (f *World) contradictedWhy(s *Server) proposal.Why {
	m, says := s.Manifest, ""
	switch f.contradiction(s) {
	case contradictedUUID:
		other := f.otherUUID[s.Name]
		m = other.spec
		says = fmt.Sprintf("spec.systemUUID %s, and %s, while the server of this name has UUID %s", m.Spec.SystemUUID, other.whose(), s.Record.UUID)
	case contradictedBMC:
		says = fmt.Sprintf("that it is behind BMC %s, and BMC %s shows it", m.Behind(), s.Record.BMC)
	case contradictedURI:
		says = fmt.Sprintf("that it is system %s, and BMC %s shows it as %s", m.Spec.SystemURI, s.Record.BMC, s.Record.SystemURI)
	case contradictedNowhere:
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonIdentityMismatch, fmt.Sprintf("Server %s in Git (%s) says %s: nothing is done to it "+
		"until these agree; correct the manifest, or where the machine is", m.Name, m.Source, says), proposal.RackOperator)
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
func areTwo(f *World, said, is model.BMCName) bool {
	a, b := f.BMCs.Named(said), f.BMCs.Named(is)
	if a == nil || b == nil || a == b || a.Endpoint != nil && a.Endpoint == b.Endpoint {
		return false
	}
	return a.Target.Address == "" || a.Target.Address != b.Target.Address
}

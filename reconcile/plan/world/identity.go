package world

import (
	"cmp"
	"fmt"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
)

// matchSpecs finds each server's manifest: by name, else by UUID. One whose UUID is another than that of the server
// of its name, and of none that has no manifest, is noted.
func (a *admission) matchSpecs() {
	a.specs, a.otherUUID = make(map[model.ServerName]*model.Server, len(a.Desired.Servers)), make(map[model.ServerName]*otherUUID)
	for name, spec := range a.Desired.Servers {
		r, uuid := a.recs[name], spec.Spec.SystemUUID
		if r != nil && (uuid == "" || model.SameUUID(uuid, r.UUID)) {
			a.specs[name] = spec
			continue
		}
		if own := a.BMCs.OwnSystem(a.BMCs.Named(model.BMCName(name))); own != nil && r == nil {
			uuid = own.UUID
		}
		if uuid == "" {
			continue
		}
		of := a.ofUUID(uuid)
		switch {
		case of != "" && a.Desired.Servers[of] == nil:
			a.specs[of], a.Aliases[string(name)] = spec, of
		case r != nil:
			a.otherUUID[name] = &otherUUID{spec, of}
		}
	}
}

// ofUUID is the server that has a UUID, one without a manifest of its name if there is one; "" = none has.
func (a *admission) ofUUID(uuid string) (of model.ServerName) {
	for _, id := range model.UUIDVariants(uuid) {
		if r := a.byUUID[id]; r != nil && (of == "" || a.Desired.Servers[of] != nil) {
			of = r.Name
		}
	}
	return of
}

// otherUUID is a manifest whose UUID is not that of the server of its name, and the server that has it; "" = none.
type otherUUID struct {
	spec *model.Server
	of   model.ServerName
}

// contradicted is why a server is left alone that does not match its manifest: that may mean another machine.
func (s *Server) contradicted(other *otherUUID) proposal.Why {
	m, says := s.Manifest, ""
	switch {
	case other != nil:
		m = other.spec
		whose := "no server has that"
		if other.of != "" {
			whose = fmt.Sprintf("server %s has that", other.of)
		}
		says = fmt.Sprintf("spec.systemUUID %s, and %s, while the server of this name has UUID %s", m.Spec.SystemUUID, whose, s.Record.UUID)
	case m == nil:
		return proposal.Why{}
	case m.Behind() != "" && s.world.areTwo(m.Behind(), s.Record.BMC):
		says = fmt.Sprintf("that it is behind BMC %s, and BMC %s shows it", m.Behind(), s.Record.BMC)
	case m.Spec.SystemURI != "" && !bmcs.SameURI(m.Spec.SystemURI, s.Record.SystemURI):
		says = fmt.Sprintf("that it is system %s, and BMC %s shows it as %s", m.Spec.SystemURI, s.Record.BMC, s.Record.SystemURI)
	default:
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonIdentityMismatch, fmt.Sprintf("Server %s in Git (%s) says %s: nothing is done to it "+
		"until these agree; correct the manifest, or where the machine is", m.Name, m.Source, says), proposal.RackOperator)
}

// areTwo reports whether two names are those of different BMCs. A device is the BMC in Git that describes it.
func (w *World) areTwo(said, is model.BMCName) bool {
	a, b := w.BMCs.Named(said), w.BMCs.Named(is)
	if a == nil || b == nil || a == b || a.Endpoint != nil && a.Endpoint == b.Endpoint {
		return false
	}
	return a.Target.Address == "" || a.Target.Address != b.Target.Address
}

// pairDuplicates notes which known servers share a UUID. Of those the first by name has it in byUUID.
func (a *admission) pairDuplicates() {
	clear(a.byUUID)
	for _, name := range sorted(a.recs) {
		r := a.recs[name]
		first := a.byUUID[r.UUID]
		if first == nil {
			a.byUUID[r.UUID] = r
			continue
		}
		a.addDuplicate(first.Name, fmt.Sprintf("server %s behind BMC %s", r.Name, r.BMC))
		a.addDuplicate(r.Name, fmt.Sprintf("server %s behind BMC %s", first.Name, first.BMC))
	}
}

// noteDuplicate notes that BMC b shows a machine with the UUID of a server that is known to be elsewhere. That it is
// still there is not known while its own BMC has never answered, or shows nothing of it.
func (a *admission) noteDuplicate(of *model.ServerRecord, b *bmcs.BMC, sys model.SystemFact) {
	own := a.BMCs.Named(of.BMC)
	if own != nil && (own.Facts == nil || bmcs.ShownAs(own.Facts, of) == bmcs.ShownUnread) {
		b.Problems = append(b.Problems, fmt.Sprintf("system %s has the UUID %s of server %s, which is looked for behind BMC %s "+
			"first", sys.URI, sys.UUID, of.Name, of.BMC))
		return
	}
	b.Duplicates = append(b.Duplicates, fmt.Sprintf("system %s has the UUID %s of server %s behind "+
		"BMC %s", sys.URI, sys.UUID, of.Name, of.BMC))
	a.addDuplicate(of.Name, fmt.Sprintf("system %s behind BMC %s", sys.URI, b.Name))
}

func (a *admission) addDuplicate(name model.ServerName, other string) {
	a.duplicates[name] = append(a.duplicates[name], other)
}

func (s *Server) duplicate(others []string) proposal.Why {
	if len(others) == 0 {
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonDuplicateUUID, fmt.Sprintf("its UUID %s is that of %s too, so nothing is armed for it and no claim "+
		"is bound to it until that is gone: %s",
		s.Record.UUID, text.List(others, " and of "), bmcs.DuplicateAdvice), proposal.RackOperator)
}

// given returns a system that shows no UUID with the one that Git gives it, or why it may be any other.
func (a *admission) given(b *bmcs.BMC, sys model.SystemFact) (model.SystemFact, string) {
	if b.Facts.Unidentified(sys) == model.ReasonNotIdentifiable {
		return sys, fmt.Sprintf("system %s shows no usable UUID and no serial number of its own (it shows %q), so it cannot be told from "+
			"others: give it one with its vendor's tool", sys.URI, sys.Board.SerialNumber)
	}
	alone := len(b.Facts.Systems) == 1
	if spec := a.specAt(b.Name, sys.URI, alone); spec != nil {
		id, _ := model.ParseUUID(spec.Spec.SystemUUID)
		sys.UUID = id.String()
		return sys, ""
	}
	ask := "spec.bmcRef"
	if b.Manifest.Within != "" {
		ask = "spec.bmc"
	}
	if !alone {
		ask += ", spec.systemURI"
	}
	return sys, fmt.Sprintf("system %s shows no usable UUID: write a Server with %s and, as spec.systemUUID, the one that its "+
		"firmware has (SMBIOS)", sys.URI, ask)
}

// specAt returns the first manifest, by name, that gives the system at a place a UUID; alone = its BMC has no other.
func (a *admission) specAt(bmc model.BMCName, uri string, alone bool) *model.Server {
	for _, name := range sorted(a.Desired.Servers) {
		s := a.Desired.Servers[name]
		at := cmp.Or(s.Spec.SystemURI, uri)
		if s.Behind() == bmc && bmcs.SameURI(at, uri) && (alone || s.Spec.SystemURI != "") && model.UsableUUID(s.Spec.SystemUUID) {
			return s
		}
	}
	return nil
}

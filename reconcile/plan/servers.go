package plan

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// loadServers puts together what is known of each server, known or new.
func (f *fleet) loadServers() {
	recs, o, m := f.admitted(), f.in.Observed, f.memory
	names := m.servers.of(recs)
	f.serverAt, f.specs = m.serverPlaces.of(names), f.matchSpecs(recs)
	records := m.records.of(names, recs)
	stored := records
	if !sameMap(recs, o.Servers) {
		stored = m.stored.of(names, o.Servers)
	}
	manifests, facts, readings := m.manifests.of(names, f.specs), m.facts.of(names, o.ServerFacts), m.readings.of(names, f.in.Readings)
	bmcs := m.serverBMCs.of(records, m.bmcPlaces.names, f.bmcAt, func(r *model.ServerRecord) model.BMCName { return r.BMC })
	claims := m.serverClaims.of(records, m.claimNames, m.claimPlaces.of(m.claimNames), func(r *model.ServerRecord) model.ClaimName { return r.Claim.Name })
	kept := m.kept.of(names)
	f.servers = make([]*server, len(names))
	m.room.servers = anew(m.room.servers, len(names))
	for i, name := range names {
		s := &m.room.servers[i]
		s.fleet, s.name, s.rec, s.stored, s.spec, s.facts, s.reading = f, name, records[i], stored[i], manifests[i], facts[i], &readings[i]
		s.kept = &kept[i]
		if s.facts == nil {
			s.facts = &model.ServerFacts{Name: name}
		}
		if at := bmcs[i]; at != nowhere {
			s.bmc = f.bmcs[at]
		}
		f.loadClaim(s, claims[i])
		s.blocked = f.blocked(s)
		if s.bmc != nil && s.bmcToConfirm() {
			s.bmc.asked = true
		}
		f.servers[i] = s
	}
	f.followRenames()
}

// matchedSpecs are manifests of which each is that of the server of its name.
type matchedSpecs struct {
	manifests map[model.ServerName]*model.Server
	recs      map[model.ServerName]*model.ServerRecord
	specs     map[model.ServerName]*model.Server
}

// matchSpecs finds each server's manifest, which nobody changes: those that were found for the
// same manifests and records, if each is that of the server of its name.
func (f *fleet) matchSpecs(recs map[model.ServerName]*model.ServerRecord) map[model.ServerName]*model.Server {
	m, manifests := &f.memory.matched, f.in.Desired.Servers
	if m.specs != nil && sameMap(m.manifests, manifests) && sameMap(m.recs, recs) {
		return m.specs
	}
	specs, byName := f.matchEachSpec(recs)
	*m = matchedSpecs{}
	if byName {
		*m = matchedSpecs{manifests, recs, specs}
	}
	return specs
}

// matchEachSpec finds each server's manifest: by name, else by UUID. One whose UUID is another
// than that of the server of its name, and of none that has no manifest, is noted. byName is
// set if each was found by its name.
func (f *fleet) matchEachSpec(recs map[model.ServerName]*model.ServerRecord) (specs map[model.ServerName]*model.Server, byName bool) {
	specs, byName = make(map[model.ServerName]*model.Server, len(f.in.Desired.Servers)), true
	var byUUID map[string]model.ServerName
	for name, spec := range f.in.Desired.Servers {
		if r := recs[name]; r != nil && (spec.Spec.SystemUUID == "" || model.SameUUID(spec.Spec.SystemUUID, r.UUID)) {
			specs[name] = spec
			continue
		}
		byName = false
		uuid := spec.Spec.SystemUUID
		if own := f.ownSystem(f.bmc(model.BMCName(name))); own != nil && recs[name] == nil {
			uuid = own.UUID
		}
		if uuid == "" {
			continue
		}
		if byUUID == nil {
			byUUID = make(map[string]model.ServerName, len(recs))
			for n, r := range recs {
				if first, twice := byUUID[r.UUID]; !twice || n < first {
					byUUID[r.UUID] = n
				}
			}
		}
		of := f.ofUUID(uuid, byUUID)
		switch {
		case of != "" && f.in.Desired.Servers[of] == nil:
			specs[of], f.aliases[string(name)] = spec, of
		case recs[name] != nil:
			f.noteOtherUUID(name, otherUUID{spec, of})
		}
	}
	return specs, byName
}

// ofUUID is the server that has a UUID, one without a manifest of its name if there is one;
// "" = none has.
func (f *fleet) ofUUID(uuid string, byUUID map[string]model.ServerName) (of model.ServerName) {
	for _, id := range model.UUIDVariants(uuid) {
		if n, known := byUUID[id]; known && (of == "" || f.in.Desired.Servers[of] != nil) {
			of = n
		}
	}
	return of
}

func (f *fleet) noteOtherUUID(name model.ServerName, other otherUUID) {
	if f.otherUUID == nil {
		f.otherUUID = make(map[model.ServerName]*otherUUID)
	}
	f.otherUUID[name] = &other
}

// resolve is the name by which Ingot knows the server that Git calls name.
func (f *fleet) resolve(name string) model.ServerName {
	if known, ok := f.aliases[name]; ok {
		return known
	}
	return model.ServerName(name)
}

// blocked says why a server cannot be acted upon at all.
func (f *fleet) blocked(s *server) proposal.Why {
	since := s.rec.Life.Since
	b := s.bmc
	if name, _ := s.requested(); name == model.OperationIgnore {
		return proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Since: since, Actor: proposal.RackOperator}
	}
	switch {
	case b == nil:
		return s.orphaned()
	case b.why.Reason != "":
		return b.why
	}
	as := shownAs(b.facts, s.rec)
	b.lacks = b.lacks || as != shownItself || s.reading.Mistaken()
	if s.reading.Mistaken() && s.reading.Since.After(b.readAt) {
		b.swapped = true
	}
	switch as {
	case shownNothing:
		return proposal.Why{Reason: model.ReasonSystemMissing, Message: fmt.Sprintf("its BMC no longer shows system %s", s.rec.SystemURI), Since: since, Actor: proposal.RackOperator}
	case shownUnread:
		return proposal.Why{Reason: model.ReasonSystemUnreadable, Message: fmt.Sprintf("its BMC lists system %s, and shows nothing of it that can be "+
			"read", s.rec.SystemURI), Since: since, Actor: proposal.RackOperator}
	case shownUnnamed:
		return proposal.Why{Reason: model.ReasonIdentityUnknown, Message: fmt.Sprintf("its BMC now shows a machine without a UUID, which may be another one "+
			"than %s", s.rec.UUID), Since: since, Actor: proposal.RackOperator}
	case shownOther:
		return proposal.Why{Reason: model.ReasonIdentityMismatch, Message: fmt.Sprintf("its BMC now shows another machine than that with "+
			"UUID %s", s.rec.UUID), Since: since, Actor: proposal.RackOperator}
	case shownItself:
	}
	return proposal.Why{}
}

// count notes what a server takes of what the fleet shares.
func (f *fleet) count(s *server) {
	if s.comesOn() {
		f.powerOns--
	}
	// One of which it is not known whether it is installed goes on as it is until its turn comes.
	begun := s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec) || f.in.Busy[s.name]
	if s.rec.Install.Reprovision != "" && begun && s.rec.Life.State == model.StateReserved {
		f.reprovisions--
	}
	if s.hasInstallPlace() {
		f.installs--
	}
}

package world

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
)

// loadServers puts together what is known of each server, known or new.
func (f *World) loadServers() {
	recs, o := f.admitted(), f.In.Observed
	f.specs = matchSpecs(f, recs)
	names := slices.Sorted(maps.Keys(recs))
	f.Servers, f.serverAt = make([]*Server, len(names)), make(map[model.ServerName]int, len(names))
	all, views := make([]Server, len(names)), make([]proposal.Server, len(names))
	for i, name := range names {
		s, read := &all[i], f.In.Readings[name]
		s.World, s.Name, s.Rec, s.stored, s.Spec, s.facts, s.Reading = f, name, recs[name], o.Servers[name], f.specs[name], o.ServerFacts[name], &read
		if s.facts == nil {
			s.facts = &model.ServerFacts{Name: name}
		}
		s.Bmc, s.View = f.Bmcs.Named(s.Rec.BMC), &views[i]
		*s.View = proposal.Server{Moment: f.Moment, Name: name, Manifest: s.Spec, Record: s.Rec, Stored: s.stored, Facts: s.facts, Reading: s.Reading}
		f.loadClaim(s)
		s.Blocked = f.blocked(s)
		f.Servers[i], f.serverAt[name] = s, i
	}
	f.followRenames()
	for _, s := range f.Servers {
		s.see()
	}
}

// matchSpecs finds each server's manifest: by name, else by UUID. One whose UUID is another
// than that of the server of its name, and of none that has no manifest, is noted.
func matchSpecs(f *World, recs map[model.ServerName]*model.ServerRecord) map[model.ServerName]*model.Server {
	specs := make(map[model.ServerName]*model.Server, len(f.In.Desired.Servers))
	var byUUID map[string]model.ServerName
	for name, spec := range f.In.Desired.Servers {
		if r := recs[name]; r != nil && (spec.Spec.SystemUUID == "" || model.SameUUID(spec.Spec.SystemUUID, r.UUID)) {
			specs[name] = spec
			continue
		}
		uuid := spec.Spec.SystemUUID
		if own := f.Bmcs.OwnSystem(f.Bmcs.Named(model.BMCName(name))); own != nil && recs[name] == nil {
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
		of := ofUUID(f, uuid, byUUID)
		switch {
		case of != "" && f.In.Desired.Servers[of] == nil:
			specs[of], f.Aliases[string(name)] = spec, of
		case recs[name] != nil:
			noteOtherUUID(f, name, otherUUID{spec, of})
		}
	}
	return specs
}

// ofUUID is the server that has a UUID, one without a manifest of its name if there is one;
// "" = none has.
func ofUUID(f *World, uuid string, byUUID map[string]model.ServerName) (of model.ServerName) {
	for _, id := range model.UUIDVariants(uuid) {
		if n, known := byUUID[id]; known && (of == "" || f.In.Desired.Servers[of] != nil) {
			of = n
		}
	}
	return of
}

func noteOtherUUID(f *World, name model.ServerName, other otherUUID) {
	if f.otherUUID == nil {
		f.otherUUID = make(map[model.ServerName]*otherUUID)
	}
	f.otherUUID[name] = &other
}

// Resolve is the name by which Ingot knows the server that Git calls name.
func (f *World) Resolve(name string) model.ServerName {
	if known, ok := f.Aliases[name]; ok {
		return known
	}
	return model.ServerName(name)
}

// blocked says why a server cannot be acted upon at all.
func (f *World) blocked(s *Server) proposal.Why {
	since := s.Rec.Life.Since
	b := s.Bmc
	if name, _ := s.View.Requested(); name == model.OperationIgnore {
		return proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Since: since, Actor: proposal.RackOperator}
	}
	switch {
	case b == nil:
		return s.orphaned()
	case b.Why.Reason != "":
		return b.Why
	}
	as := bmcs.ShownAs(b.Facts, s.Rec)
	if as != bmcs.ShownItself || s.Reading.Mistaken() {
		b.Needs(bmcs.RereadOften)
	}
	if s.Reading.Mistaken() && s.Reading.Since.After(b.ReadAt) {
		b.Needs(bmcs.RereadNow)
	}
	switch as {
	case bmcs.ShownNothing:
		return proposal.Why{Reason: model.ReasonSystemMissing, Message: fmt.Sprintf("its BMC no longer shows system %s", s.Rec.SystemURI), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownUnread:
		return proposal.Why{Reason: model.ReasonSystemUnreadable, Message: fmt.Sprintf("its BMC lists system %s, and shows nothing of it that can be "+
			"read", s.Rec.SystemURI), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownUnnamed:
		return proposal.Why{Reason: model.ReasonIdentityUnknown, Message: fmt.Sprintf("its BMC now shows a machine without a UUID, which may be another one "+
			"than %s", s.Rec.UUID), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownOther:
		return proposal.Why{Reason: model.ReasonIdentityMismatch, Message: fmt.Sprintf("its BMC now shows another machine than that with "+
			"UUID %s", s.Rec.UUID), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownItself:
	}
	return proposal.Why{}
}

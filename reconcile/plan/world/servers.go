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
	all, seen := make([]Server, len(names)), make([]proposal.Server, len(names))
	for i, name := range names {
		s, read := &all[i], f.In.Readings[name]
		seen[i] = proposal.Server{Moment: f.Moment, Name: name, Manifest: f.specs[name], Record: recs[name], Stored: o.Servers[name], Facts: o.ServerFacts[name], Reading: &read}
		*s = Server{Server: &seen[i], World: f, Behind: f.BMCs.Named(recs[name].BMC)}
		if s.Facts == nil {
			s.Facts = &model.ServerFacts{Name: name}
		}
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
		if own := f.BMCs.OwnSystem(f.BMCs.Named(model.BMCName(name))); own != nil && recs[name] == nil {
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
			specs[of], f.Moment.Aliases[string(name)] = spec, of
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

// blocked says why a server cannot be acted upon at all.
func (f *World) blocked(s *Server) proposal.Why {
	since := s.Record.Life.Since
	b := s.Behind
	if name, _ := s.Requested(); name == model.OperationIgnore {
		return proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Since: since, Actor: proposal.RackOperator}
	}
	switch {
	case b == nil:
		return s.orphaned()
	case b.Why.Reason != "":
		return b.Why
	}
	as := bmcs.ShownAs(b.Facts, s.Record)
	if as != bmcs.ShownItself || s.Reading.Mistaken() {
		b.Needs(bmcs.RereadOften)
	}
	if s.Reading.Mistaken() && s.Reading.Since.After(b.ReadAt) {
		b.Needs(bmcs.RereadNow)
	}
	switch as {
	case bmcs.ShownNothing:
		return proposal.Why{Reason: model.ReasonSystemMissing, Message: fmt.Sprintf("its BMC no longer shows system %s", s.Record.SystemURI), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownUnread:
		return proposal.Why{Reason: model.ReasonSystemUnreadable, Message: fmt.Sprintf("its BMC lists system %s, and shows nothing of it that can be "+
			"read", s.Record.SystemURI), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownUnnamed:
		return proposal.Why{Reason: model.ReasonIdentityUnknown, Message: fmt.Sprintf("its BMC now shows a machine without a UUID, which may be another one "+
			"than %s", s.Record.UUID), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownOther:
		return proposal.Why{Reason: model.ReasonIdentityMismatch, Message: fmt.Sprintf("its BMC now shows another machine than that with "+
			"UUID %s", s.Record.UUID), Since: since, Actor: proposal.RackOperator}
	case bmcs.ShownItself:
	}
	return proposal.Why{}
}

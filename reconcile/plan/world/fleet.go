package world

import (
	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
)

// World is all that one plan knows, put together.
type World struct {
	In      *Input
	Moment  *proposal.Moment
	Servers []*Server // in the order of names
	// serverAt says where in Servers one of a name is.
	serverAt    map[model.ServerName]int
	BMCs        *bmcs.Set
	Claims      []bind.Claim                // in the order of names
	Served      map[model.ClaimName]*Server // the servers that claims are bound to, also claims that Git lacks
	Record      *model.FleetRecord          // with this plan's changes
	ObserveOnly proposal.Why

	specs               map[model.ServerName]*model.Server      // the manifests by the name that Ingot knows the server by
	renamed             map[model.ServerName]*model.ServerClaim // the claims that servers' claims became
	specByUUID          map[string]model.ServerName             // made when first needed
	unknown             *proposal.Why                           // of the very first claims; made when first needed
	named               map[model.ServerName]string             // what names a server in Git; made when first needed
	gapFound, gapUnread *Server                                 // see noteGap
	otherUUID           map[model.ServerName]*otherUUID         // by the name of the manifest; nil while there is none
	duplicates          map[model.ServerName][]string           // other machines that have a server's UUID; nil while there is none
}

// loadMaintenances finds what takes each server out of service.
func (f *World) loadMaintenances() {
	find := func(name model.ServerName) *proposal.Server {
		if s := f.Server(name); s != nil {
			return s.Server
		}
		return nil
	}
	service.Assign(f.Moment, find, laws.MayMaintain)
	for _, s := range f.Servers {
		service.Park(s.Server)
	}
}

// Server is the server of a name, nil if there is none.
func (f *World) Server(name model.ServerName) *Server {
	if i, known := f.serverAt[name]; known {
		return f.Servers[i]
	}
	return nil
}

// New puts together what is known.
func New(in *Input) *World {
	f := &World{
		In:      in,
		Served:  make(map[model.ClaimName]*Server),
		renamed: make(map[model.ServerName]*model.ServerClaim),
	}
	f.Moment = f.newMoment()
	f.loadClaims()
	record := in.Observed.Fleet
	f.Record = &record
	f.BMCs = bmcs.Load(&bmcs.Input{
		Desired: in.Desired, Observed: in.Observed, Policy: &in.Policy, Now: in.Now, Read: in.BMCRead, Unconfirmed: in.Unconfirmed,
		Busy: in.BusyBMCs, Outdated: f.Outdated(),
	})
	f.loadServers()
	f.loadMaintenances()
	f.observeIfOutdated()
	f.noteUnknown()
	f.Moment.Unknown = f.Record.UnknownToken
	f.noteGap()
	f.noteUnreadable()
	f.noteRevision()
	f.noteAbsences()
	f.noteRemovals()
	return f
}

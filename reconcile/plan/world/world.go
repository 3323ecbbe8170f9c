// Package world puts together all that one plan knows: it decides nothing about servers.
package world

import (
	"cmp"
	"slices"
	"sort"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
)

// World is all that one plan knows, put together. Servers and Claims are in the order of names.
type World struct {
	*proposal.Moment
	In          *Input
	Servers     []*Server
	BMCs        *bmcs.Set
	Claims      []*bind.Claim
	Served      map[model.ClaimName]*Server // the servers that claims are bound to, also claims that Git lacks
	Record      *model.FleetRecord          // with this plan's changes
	ObserveOnly proposal.Why

	unknownFleet        proposal.Why                // why the claims of the very first revision wait
	named               map[model.ServerName]string // what names a server in Git; made when first needed
	gapFound, gapUnread *Server                     // see noteGap
}

// New puts together what is known.
func New(in *Input) *World {
	record := in.Observed.Fleet
	w := &World{In: in, Record: &record, Moment: &proposal.Moment{
		Now: in.Now, Started: in.Started, Serving: in.Serving, LongGap: in.LongGap, Policy: &in.Policy, Desired: in.Desired, Observed: in.Observed,
		DigestKey: in.DigestKey, Outrun: make(map[model.ClaimName]bool), Aliases: make(map[string]model.ServerName),
		Conditions: make(map[model.ServerName][]proposal.RuleTaint), Unpushed: in.Policy.ShowFirst && in.Shown == nil, Unannounced: in.Unannounced,
	}}
	w.loadClaims()
	w.BMCs = bmcs.Load(&bmcs.Input{
		Desired: in.Desired, Observed: in.Observed, Policy: &in.Policy, Now: in.Now, Read: in.BMCRead, Unconfirmed: in.Unconfirmed,
		Busy: in.BusyBMCs, Outdated: w.Outdated(),
	})
	w.loadServers()
	w.loadMaintenances()
	if w.ObserveOnly = w.observeOnly(); w.ObserveOnly.Reason == "" {
		w.noteUnknown()
		w.noteGap()
		w.noteUnreadable()
		w.noteRevision()
		w.noteAbsences()
		w.noteRemovals()
	}
	w.Unknown = w.Record.UnknownToken
	return w
}

// loadMaintenances finds what takes each server out of service.
func (w *World) loadMaintenances() {
	find := func(name model.ServerName) *proposal.Server {
		if s := w.Server(name); s != nil {
			return s.Server
		}
		return nil
	}
	service.Assign(w.Moment, find, laws.MayMaintain)
	for _, s := range w.Servers {
		service.Park(s.Server)
	}
}

// Server is the server of a name, nil if there is none.
func (w *World) Server(name model.ServerName) *Server {
	i, known := sort.Find(len(w.Servers), func(i int) int { return cmp.Compare(name, w.Servers[i].Name) })
	if !known {
		return nil
	}
	return w.Servers[i]
}

// sorted returns the names in a map, in order. It is faster than slices.Sorted.
func sorted[K ~string, V any](all map[K]V) []K {
	names := make([]K, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

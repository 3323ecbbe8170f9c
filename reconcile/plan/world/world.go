// Package world puts together all that one plan knows: it decides nothing about servers.
package world

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/service"
)

// Input is all that a plan is made from. The planner does not change the values that it points to.
type Input struct {
	Desired  *model.Desired
	Observed *model.Observed
	Readings map[model.ServerName]reading.State // what was last read of each server's power in this process
	BMCRead  map[model.BMCName]time.Time        // when each BMC's own facts were last read in this process
	// Unconfirmed is when BMCs first contradicted what is recorded of their servers, which is not believed yet.
	Unconfirmed map[model.BMCName]time.Time
	// Busy are the servers and BMCs with a move under way. They are planned with as if their move were done, for
	// their records in Observed say so, and they are not moved again.
	Busy     map[model.ServerName]bool
	BusyBMCs map[model.BMCName]bool
	Process
	Checked   map[proposal.BootKey]proposal.Checked // results of checks of boots; nil = boots are not checked
	Nonce     string                                // fresh and random for each plan: what people approve by is made of it
	Pools     []model.PoolFacts                     // those that DHCP gives addresses from
	Addresses map[model.ServerName][]netip.Addr     // leased to servers with a claim
	DigestKey model.DigestKey                       // makes the digests that records hold, zero = they are plain
	Policy    policy.Options
	Now       time.Time
	Hold      func(*proposal.Proposal) bool // holds proposals in tests; nil = none
}

// Process is what this process has done, and what it may do.
type Process struct {
	// Shown are the intents that the status branch shows; nil = it has pushed nothing yet.
	Shown       map[model.ServerName]model.Intent
	Unannounced time.Time // since when the status branch cannot be pushed; zero = it can
	// ObserveOnly says why nothing may be done, HealOnly why bound servers are only powered on from their disks; "" = no.
	ObserveOnly, HealOnly string
	// Started is when it began, Serving when machines that boot could reach it; zero = they cannot yet.
	Started, Serving time.Time
	// LongGap is set if decisions may be lost that are newer than all that is known: no Ingot had run for long.
	LongGap bool
	First   model.Revision // that it read from Git
}

// World is all that one plan knows, put together. Servers, Claims and Maintenances are in the order of names.
type World struct {
	*proposal.Moment
	In           *Input
	Servers      []*Server
	BMCs         *bmcs.Set
	Claims       []*bind.Claim
	Maintenances []Maintenance
	Served       map[model.ClaimName]*Server // the servers that claims are bound to, also claims that Git lacks
	Record       *model.FleetRecord          // with this plan's changes
	ObserveOnly  proposal.Why

	unknownFleet        proposal.Why                // why the claims of the very first revision wait
	named               map[model.ServerName]string // what names a server in Git; made when first needed
	gapFound, gapUnread *Server                     // see noteGap
}

// Maintenance is one ServerMaintenance in force.
type Maintenance struct {
	Manifest *model.ServerMaintenance
	Server   model.ServerName // as Ingot knows the one that it names
	Unknown  string           // that there is no such server, "" if there is
	Refused  bool             // its tenant may not take that server out of service
}

// New puts together what is known.
func New(in *Input) *World {
	record := in.Observed.Fleet
	w := &World{In: in, Record: &record, Moment: &proposal.Moment{
		Now: in.Now, Started: in.Started, Serving: in.Serving, LongGap: in.LongGap, Policy: &in.Policy, Desired: in.Desired, Observed: in.Observed,
		DigestKey: in.DigestKey, Outrun: make(map[model.ClaimName]bool), Aliases: make(map[string]model.ServerName),
		Conditions: make(map[model.ServerName][]proposal.RuleTaint), Unpushed: in.Policy.ShowFirst && in.Shown == nil, Unannounced: in.Unannounced,
	}}
	for _, name := range sorted(w.Desired.Claims) {
		w.Claims = append(w.Claims, &bind.Claim{Name: name, Manifest: w.Desired.Claims[name]})
	}
	w.BMCs = bmcs.Load(&bmcs.Input{
		Desired: in.Desired, Observed: in.Observed, Policy: &in.Policy, DigestKey: in.DigestKey, Now: in.Now, Read: in.BMCRead, Unconfirmed: in.Unconfirmed,
		Busy: in.BusyBMCs, Outdated: w.Outdated(),
	})
	w.loadServers()
	w.loadMaintenances()
	if w.ObserveOnly = w.observeOnly(); w.ObserveOnly.Reason == "" {
		w.noteUnknown()
		w.noteGap()
		w.noteRevision()
		w.noteAbsences()
		w.noteRemovals()
	}
	w.Unknown = w.Record.UnknownToken
	return w
}

// loadMaintenances finds what takes each server out of service, and so which servers claims may get.
func (w *World) loadMaintenances() {
	for _, name := range sorted(w.Desired.Maintenances) {
		m := Maintenance{Manifest: w.Desired.Maintenances[name]}
		m.Server = w.Resolve(m.Manifest.Spec.ServerRef.Name)
		if s := w.Server(m.Server); s != nil {
			if m.Refused = !laws.MayMaintain(m.Manifest, s.Server); !m.Refused {
				service.Assign(s.Server, m.Manifest)
			}
		}
		w.Maintenances = append(w.Maintenances, m)
	}
	for _, s := range w.Servers {
		service.Park(s.Server)
		s.Coming, s.Unfree = s.coming(), s.unfree()
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

// sorted is faster than slices.Sorted, which knows no length.
func sorted[K ~string, V any](all map[K]V) []K {
	names := make([]K, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

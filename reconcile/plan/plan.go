package plan

import (
	"cmp"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/laws/window"
	"ingot/reconcile/plan/proposal"
)

// fleet is one plan under way: the input, and what all servers share.
type fleet struct {
	in      *Input
	memory  *Memory
	servers []*server // in the order of names
	// serverAt says where in servers one of a name is, bmcAt where in bmcs.
	serverAt map[model.ServerName]int
	bmcs     []*bmcView // in the order of names
	bmcAt    map[model.BMCName]int
	// endpoints are in the order of names.
	endpoints     []*endpointView
	endpointBy    map[string]*endpointView
	endpointByMAC map[string]*endpointView
	holders       map[string]string // the MAC address of the device that has each IP address
	refs          map[string]bool   // made when first needed
	// specs are the manifests of servers, by the name that Ingot knows the server by.
	specs map[model.ServerName]*model.Server
	// served are the servers that claims are bound to, in the order of Memory.claims, and
	// servedElse those of claims that Git lacks.
	served     []*server
	servedElse map[model.ClaimName]*server
	// allowed are the steps that the guard lets be begun now, held those that it holds
	// back, by server.
	allowed, blockedByGuard map[model.ServerName][]model.Disruption
	guardNext               time.Time                               // when a list that is held may go; zero = none will by time
	renamed                 map[model.ServerName]*model.ServerClaim // the claims that servers' claims became
	outrun                  map[model.ClaimName]bool                // claims whose new name another server has
	record                  *model.FleetRecord                      // with this plan's changes
	observeOnly             proposal.Why
	powerOns                int          // that may still be begun
	queued                  []QueuedMove // power-ons that may take the place of others
	reprovisions            int
	installs                int // from disk images, that may still be begun
	maintained              map[model.ServerName]maintained
	readiness               []ReadinessRule
	awaiting                map[model.ServerName]string            // ServerMaintenances that wait for the owners of claims
	labels                  map[model.ServerName]map[string]string // cache
	specByUUID              map[string]model.ServerName            // made when first needed
	unboundOf               *unboundServers                        // made when first needed
	likely                  likely                                 // made when first needed
	unknown                 *proposal.Why                          // of the very first claims; made when first needed
	named                   map[model.ServerName]string            // what names a server in Git; made when first needed
	gapFound, gapUnread     *server                                // see noteGap
	aliases                 map[string]model.ServerName            // what Git calls a server, where Ingot knows it by another name
	otherUUID               map[model.ServerName]*otherUUID        // by the name of the manifest; nil while there is none
	duplicates              map[model.ServerName][]string          // other machines that have a server's UUID; nil while there is none
}

// Plan decides what to do now, and says why each object is where it is. The same input
// gives the same result.
func Plan(in *Input) *Result {
	f := newFleet(in)
	r := &Result{Moves: make(map[model.ServerName]*Move), Readings: make(map[model.BMCName]*BMCMove)}
	f.planEndpoints(r)
	f.planBMCs(r)
	f.planClaims(r)
	f.guard()
	f.decideReprovisions()
	r.wake(f.guardNext)
	f.bindClaims()
	r.ObserveOnly = f.observeOnly
	r.Claims, r.BMCs, r.Endpoints, r.Maintenances = f.judgeClaims(), f.judgeBMCs(), f.judgeEndpoints(), f.judgeMaintenances()
	r.ReadinessRules, r.Unmatched = f.readiness, f.unmatched()
	f.planServers(r)
	if !sameFleet(f.record, &in.Observed.Fleet) {
		r.Decided.Fleet = f.record
	}
	return r
}

// planServers takes each server's next step.
func (f *fleet) planServers(r *Result) {
	r.Servers = make([]*Server, len(f.servers))
	for i, s := range f.servers {
		j := s.judge()
		st := s.step()
		j.Why = j.stepWhy(st)
		j.RanWhenLastRead = s.ranWhenLastRead(j.Why)
		r.Servers[i] = s.kept.judge(j)
		if !f.in.Busy[s.name] {
			f.planMoves(r, s, st)
			forget(&r.Decided, s.rec, st)
		}
		r.wake(st.Wake)
	}
	r.Queued = f.queued
}

// planMoves has the moves of a step carried out.
func (f *fleet) planMoves(r *Result, s *server, st Step) {
	for _, m := range []*Move{st.Move, st.Queued} {
		if m != nil {
			m.Target, m.was = f.target(m.Then), f.knownOf(s, m.Then)
		}
	}
	if st.Move != nil {
		r.Moves[s.name] = st.Move
	}
	if st.Queued != nil {
		f.queued = append(f.queued, QueuedMove{s.name, st.Queued})
	}
}

// target is how a server is reached.
func (f *fleet) target(rec *model.ServerRecord) model.SystemTarget {
	t := model.SystemTarget{URI: rec.SystemURI, UUID: rec.UUID}
	if rec.Board != nil {
		t.UUID, t.Board = "", *rec.Board
	}
	if b := f.bmc(rec.BMC); b != nil {
		t.BMC = b.target
	}
	return t
}

// server is the server of a name, nil if there is none.
func (f *fleet) server(name model.ServerName) *server {
	if i, known := f.serverAt[name]; known {
		return f.servers[i]
	}
	return nil
}

// bmc is the BMC of a name, nil if there is none.
func (f *fleet) bmc(name model.BMCName) *bmcView {
	if i, known := f.bmcAt[name]; known {
		return f.bmcs[i]
	}
	return nil
}

func (r *Result) wake(at time.Time) {
	if !at.IsZero() && (r.Next.IsZero() || at.Before(r.Next)) {
		r.Next = at
	}
}

func newFleet(in *Input) *fleet {
	f := &fleet{
		in:             in,
		memory:         cmp.Or(in.Memory, new(Memory)),
		servedElse:     make(map[model.ClaimName]*server),
		allowed:        make(map[model.ServerName][]model.Disruption),
		blockedByGuard: make(map[model.ServerName][]model.Disruption),
		renamed:        make(map[model.ServerName]*model.ServerClaim),
		outrun:         make(map[model.ClaimName]bool),
		maintained:     make(map[model.ServerName]maintained),
		awaiting:       make(map[model.ServerName]string),
		labels:         make(map[model.ServerName]map[string]string),
		aliases:        make(map[string]model.ServerName),
		powerOns:       in.Policy.MaxConcurrentPowerOns,
	}
	f.memory.plans++
	f.memory.see(in.Desired)
	f.memory.room.served = anew(f.memory.room.served, len(f.memory.claims))
	f.served = f.memory.room.served
	record := in.Observed.Fleet
	f.record = &record
	f.loadEndpoints()
	f.loadBMCs()
	f.loadServers()
	f.loadMaintenances()
	f.reprovisions, f.installs = in.Policy.MaxConcurrentReprovisions, in.Policy.MaxConcurrentInstalls
	f.observeIfOutdated()
	for _, s := range f.servers {
		f.count(s)
	}
	f.judgeReadiness()
	f.noteUnknown()
	f.noteGap()
	f.noteUnreadable()
	f.noteRevision()
	f.noteAbsences()
	f.noteRemovals()
	return f
}

// sameFleet reports whether two records of the fleet say the same.
func sameFleet(a, b *model.FleetRecord) bool {
	return a.Applied == b.Applied && a.Sequence == b.Sequence && slices.Equal(a.Tips, b.Tips) &&
		slices.EqualFunc(a.Holds, b.Holds, window.SameHold) && slices.Equal(a.ApprovedSteps, b.ApprovedSteps) && slices.Equal(a.Done, b.Done) &&
		slices.Equal(a.Absent, b.Absent) && a.AbsentMore == b.AbsentMore && a.AbsentToken == b.AbsentToken &&
		slices.Equal(a.Removed, b.Removed) && slices.Equal(a.Unreadable, b.Unreadable) &&
		a.Unknown.Equal(b.Unknown) && a.UnknownToken == b.UnknownToken && a.GapToken == b.GapToken
}

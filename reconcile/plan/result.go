package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/proposal"
)

// Result is what Plan decided, and why each object is where it is.
type Result struct {
	// Decided are records that change without anything being done to a machine.
	Decided proposal.Changes
	// Moves and Readings are what to do now with servers and BMCs, none with one that is
	// busy.
	Moves    map[model.ServerName]*Move
	Readings map[model.BMCName]*bmcs.Reading
	// Queued are power-ons that guard.maxConcurrentPowerOns leaves no room for now. Each may
	// be begun, in their order and until the next plan, in place of one that is under way and
	// has Settled with PoweredOn.
	Queued []QueuedMove
	// Next is when to plan again if nothing happens before; zero = not by time.
	Next time.Time

	// ObserveOnly says why nothing is done to any server, "" when something may be.
	ObserveOnly proposal.Why
	// The objects follow, sorted by name, and are read-only.
	Servers        []*Server
	Claims         []*bind.Claim
	BMCs           []*bmcs.BMC
	Endpoints      []*bmcs.Endpoint
	Maintenances   []Maintenance
	ReadinessRules []bind.ReadinessRule
	// Unmatched are warnings of what Git says of servers that are not known.
	Unmatched []model.Problem
}

// QueuedMove is a move that waits for another to end.
type QueuedMove struct {
	Name model.ServerName
	*Move
}

// Server is one server as a plan found it, and what comes of it.
type Server struct {
	Name     model.ServerName
	Record   *model.ServerRecord
	Manifest *model.Server      // nil = Git says nothing of it
	Claim    *model.ServerClaim // the claim that it is bound to, if that is in force
	Stage    install.Stage      // of the install for the claim
	Why      proposal.Why       // the zero one = it is where it should be

	// What else there is to say of it, nil where there is nothing.
	Duplicate   *proposal.Why        // another machine has its UUID
	Unarmed     *proposal.Why        // its boot cannot be prepared
	Unbooted    *proposal.Why        // it did not boot what it is armed for
	Pending     *proposal.Why        // its claim asks for something else than was installed
	Unconfirmed *proposal.Why        // nothing has said that it booted what was installed
	Exposed     *proposal.Why        // its claim's Secret was served to another machine
	CloudInit   *proposal.Why        // cloud-init ended in error on it
	Taints      []proposal.RuleTaint // by ServerReadinessRules
	Approval    *proposal.Why        // a ServerMaintenance waits for the owner of its claim
	Power       *proposal.Why        // its manifest says a power state, and its claim decides

	// RanWhenLastRead is set when Why is nothing but that the server cannot be read now,
	// and it was On before: what runs on it goes on without its BMC.
	RanWhenLastRead bool
}

// Maintenance is one ServerMaintenance in force.
type Maintenance struct {
	Name     string
	Manifest *model.ServerMaintenance
	Server   model.ServerName // as Ingot knows the one that it names
	Unknown  string           // that there is no such server, "" if there is
	Refused  bool             // its tenant may not take that server out of service
}

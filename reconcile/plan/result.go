package plan

import (
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
	"ingot/reconcile/plan/world"
)

// Result is what Plan decided, and why each object is where it is.
type Result struct {
	Decided proposal.Changes // records that change without anything being done to a machine
	// Moves and Readings are what to do now with servers and BMCs that are not busy.
	Moves    map[model.ServerName]*Move
	Readings map[model.BMCName]*bmcs.Reading
	// Queued are power-ons that found no place: each may be begun, in order, once a move has Settled with PoweredOn.
	Queued []QueuedMove
	// Taken are the proposals of Moves that people are shown, and those by which servers are forgotten.
	// Asked are those that take something from a server's user, whether they are held or not.
	Taken, Asked []*proposal.Proposal
	Next         time.Time    // when to plan again if nothing happens before; zero = not by time
	ObserveOnly  proposal.Why // why nothing is done to any server, the zero one when something may be

	// The objects follow, sorted by name, and are read-only.
	Servers        []*Server
	Claims         []*bind.Claim
	BMCs           []*bmcs.BMC
	Endpoints      []*bmcs.Endpoint
	Maintenances   []world.Maintenance
	ReadinessRules []bind.ReadinessRule
	Unmatched      []model.Problem                    // warnings: Git names servers that are not known
	Wanted         map[proposal.BootKey]proposal.Boot // the boots that Input.Checked should have
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

	RanWhenLastRead bool // Why is only that the server cannot be read now, and it was On before
}

// describe is what a server is like before its step, and why it is not where it should be.
func (f *planner) describe(s *world.Server, c *choice) *Server {
	v := s.Server
	j := &Server{
		Name: s.Name, Record: s.Record, Manifest: s.Manifest, Claim: s.Claim, Stage: install.StageOf(v), Taints: s.Taints, Why: c.Why,
		Duplicate: proposal.Some(v.Duplicate), Unarmed: proposal.Some(boot.Unarmed(v)), Approval: proposal.Some(service.ApprovalWhy(v)),
	}
	if p := s.Record.Boot.Problem; proposal.FailedBoot(p) {
		j.Unbooted = proposal.Some(proposal.ProblemWhy(v, p))
	}
	if v.Unconfirmed() {
		j.Unconfirmed = proposal.Some(install.UnconfirmedWhy(v))
	}
	if s.Claim != nil {
		if s.Outdated {
			j.Pending = proposal.Some(f.pending(v))
		}
		j.Exposed, j.CloudInit = proposal.Some(boot.Exposed(v)), proposal.Some(install.CloudInitFailed(v))
	}
	if do := next(c.Do); j.Why.Reason == "" && !c.Waits && do != "" {
		j.Why = v.Why(model.ReasonInProgress, "next: "+do)
	}
	j.RanWhenLastRead = s.RanWhenLastRead(j.Why)
	return j
}

func (f *planner) pending(s *proposal.Server) proposal.Why {
	why := install.Pending(s)
	if s.Record.Install.Reprovision == "" || why.Reason != "" {
		return why
	}
	b, _ := booting.ClaimBoot(s)
	if why = boot.Trouble(s, b); why.Reason != "" {
		return why
	}
	if s.AwaitsOff(model.PurposeClaim) && proposal.NeedsInstallPlace(s) && f.places.left[proposal.InstallPlace] <= 0 {
		return placeWhy(s, proposal.InstallPlace)
	}
	return placeWhy(s, proposal.ReprovisionPlace)
}

// next names actions, if one of them does more than read and something waits for it; "" = none does.
func next(do []proposal.Action) string {
	acts, texts := false, make([]string, len(do))
	for i, a := range do {
		_, reads := a.(proposal.Inspect)
		acts, texts[i] = acts || !reads && !proposal.Aside(a), a.String()
	}
	if !acts {
		return ""
	}
	return strings.Join(texts, ", then ")
}

// noteUnread has each BMC say why the first of its servers that cannot be read cannot.
func (f *planner) noteUnread() {
	for _, s := range f.Servers {
		if s.Behind == nil || s.Behind.Why.Reason != "" || s.Reading.Failures < 2 || s.Reading.Mistaken() {
			continue
		}
		s.Behind.Why = laws.Unreachable(s.Server)
		if s.Behind.Why.Reason == model.ReasonBMCUnreachable {
			s.Behind.Why.Reason = model.ReasonConnectionFailed
		}
	}
}

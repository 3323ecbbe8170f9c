package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// places are what the fleet has a limited number of, and what is left of it.
type places struct {
	policy                          *policy.Options
	powerOns, installs, reprovision int
	queued                          []QueuedMove // power-ons that wait for a place
}

// newPlaces counts what is under way.
func newPlaces(f *planner) *places {
	p := &places{
		policy: &f.In.Policy, powerOns: f.In.Policy.MaxConcurrentPowerOns, installs: f.In.Policy.MaxConcurrentInstalls,
		reprovision: f.In.Policy.MaxConcurrentReprovisions,
	}
	for _, s := range f.Servers {
		v := s.Server
		if proposal.ComesOn(v) {
			p.powerOns--
		}
		// One of which it is not known whether it is installed goes on as it is until its turn comes.
		begun := !v.HasInstall() && !v.InstallUnknown() || v.Busy
		if v.Record.Install.Reprovision != "" && begun && v.State() == model.StateReserved {
			p.reprovision--
		}
		if proposal.HasInstallPlace(v) {
			p.installs--
		}
	}
	return p
}

// take takes the places that a proposal needs, all or none, or says what is waited for.
func (l *places) take(p *proposal.Proposal) proposal.Why {
	for _, place := range p.Place {
		if why := l.full(p.Of, place); why.Reason != "" {
			return why
		}
	}
	for _, place := range p.Place {
		switch place {
		case proposal.PowerOnPlace:
			l.powerOns--
		case proposal.InstallPlace:
			l.installs--
		case proposal.ReprovisionPlace:
			l.reprovision--
		}
	}
	return proposal.Why{}
}

func (l *places) full(s *proposal.Server, place proposal.Place) proposal.Why {
	switch {
	case place == proposal.PowerOnPlace && !l.hasPowerOn(s):
		return s.Why(model.ReasonPowerOnsLimited, "waiting for other servers to power on (guard.maxConcurrentPowerOns)")
	case place == proposal.InstallPlace && l.installs <= 0:
		return s.Why(model.ReasonInstallsLimited, "waiting for the disk images of other servers to be written (guard.maxConcurrentInstalls)")
	case place == proposal.ReprovisionPlace && l.reprovision <= 0:
		return s.Why(model.ReasonReprovisionQueued, "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)")
	}
	return proposal.Why{}
}

// hasPowerOn reports whether the server may be powered on in addition to the others. One that did
// not come on when it was last asked leaves half of the places to those that may, so that broken
// machines do not delay the others.
func (l *places) hasPowerOn(s *proposal.Server) bool {
	left, had := l.powerOns, s.Stored
	if had == nil || had.Power.Asked == nil || had.Power.Asked.Want != model.PowerOn || s.Reading.Reached || had.Power.Asked.Reached {
		return left > 0
	}
	if l.policy.MaxConcurrentPowerOns == 1 && s.Now.Before(s.NotedAt(had.Power.Asked.At).Add(2*l.policy.PowerOnLimit)) {
		return false // it takes turns with the others
	}
	return left-l.policy.MaxConcurrentPowerOns/2 > 0
}

// queuedPerPowerOn is how many servers are queued for each that may be powering on.
const queuedPerPowerOn = 4

// canQueue reports whether a server may take the place of another that is on, even before the next
// plan: in a large fleet that would come long after.
func (l *places) canQueue(s *proposal.Server) bool {
	return !s.Starting() && s.Now.Before(proposal.NextPoll(s, s.Reading.At)) && len(l.queued) < queuedPerPowerOn*l.policy.MaxConcurrentPowerOns
}

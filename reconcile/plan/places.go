package plan

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// places are what the fleet has a limited number of, and what is left of it.
type places struct {
	left [3]int // of each proposal.Place
}

func newPlaces(f *planner) *places {
	p := &f.In.Policy
	l := &places{left: [3]int{
		proposal.PowerOnPlace: p.MaxConcurrentPowerOns, proposal.InstallPlace: p.MaxConcurrentInstalls,
		proposal.ReprovisionPlace: p.MaxConcurrentReprovisions,
	}}
	for _, s := range f.Servers {
		v := s.Server
		if proposal.ComesOn(v) {
			l.left[proposal.PowerOnPlace]--
		}
		// One of which it is not known whether it is installed goes on as it is until its turn comes.
		begun := !v.HasInstall() && !v.InstallUnknown() || v.Busy
		if v.Record.Install.Reprovision != "" && begun && v.State() == model.StateReserved {
			l.left[proposal.ReprovisionPlace]--
		}
		if proposal.HasInstallPlace(v) {
			l.left[proposal.InstallPlace]--
		}
	}
	return l
}

// take takes the places that a proposal needs, all or none, or says what is waited for.
func (l *places) take(p *proposal.Proposal) proposal.Why {
	isFull := func(place proposal.Place) bool {
		return l.left[place] <= 0 || place == proposal.PowerOnPlace && !l.hasPowerOn(p.Of)
	}
	if i := slices.IndexFunc(p.Place, isFull); i >= 0 {
		return placeWhy(p.Of, p.Place[i])
	}
	for _, place := range p.Place {
		l.left[place]--
	}
	return proposal.Why{}
}

// full are the reason and the message of a server that waits for a place.
var full = [...][2]string{
	proposal.PowerOnPlace:     {model.ReasonPowerOnsLimited, "waiting for other servers to power on (guard.maxConcurrentPowerOns)"},
	proposal.InstallPlace:     {model.ReasonInstallsLimited, "waiting for the disk images of other servers to be written"},
	proposal.ReprovisionPlace: {model.ReasonReprovisionQueued, "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)"},
}

func placeWhy(s *proposal.Server, of proposal.Place) proposal.Why {
	return s.Why(full[of][0], full[of][1])
}

// hasPowerOn reports whether the server may be powered on. One that did not come on when it was last asked leaves
// half of the places to others, so that broken machines do not delay them.
func (l *places) hasPowerOn(s *proposal.Server) bool {
	if s.Stored == nil || s.Stored.Power.Asked == nil || s.Reading.Reached {
		return true
	}
	last, most := s.Stored.Power.Asked, s.Policy.MaxConcurrentPowerOns
	switch {
	case last.Want != model.PowerOn || last.Reached:
		return true
	case most == 1 && s.Now.Before(s.NotedAt(last.At).Add(2*s.Policy.PowerOnLimit)):
		return false // it takes turns with the others
	}
	return l.left[proposal.PowerOnPlace] > most/2
}

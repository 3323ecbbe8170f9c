package plan

import (
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
	"ingot/reconcile/plan/world"
)

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
		if booting.Outdated(v) {
			j.Pending = proposal.Some(f.pending(v))
		}
		j.Exposed, j.CloudInit, j.Power = proposal.Some(boot.Exposed(v)), proposal.Some(install.CloudInitFailed(v)), proposal.Some(life.PowerIgnored(v))
	}
	if do := next(c.Do); j.Why.Reason == "" && !c.Waits && do != "" {
		j.Why = v.Why(model.ReasonInProgress, "next: "+do)
	}
	j.RanWhenLastRead = s.RanWhenLastRead(j.Why)
	return j
}

// pending says why what the claim asks for is not installed yet.
func (f *planner) pending(s *proposal.Server) proposal.Why {
	why := install.Pending(s)
	if s.Record.Install.Reprovision == "" || why.Reason != "" {
		return why
	}
	b, _ := booting.ClaimBoot(s)
	if why, _ = boot.Trouble(s, b); why.Reason != "" {
		return why
	}
	if s.AwaitsOff(model.PurposeClaim) && proposal.NeedsInstallPlace(s) && f.places.left[proposal.InstallPlace] <= 0 {
		return placeWhy(s, proposal.InstallPlace)
	}
	return placeWhy(s, proposal.ReprovisionPlace)
}

// next names actions, if one of them does more than read or than what nothing waits for; "" = none does.
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

// maintenances decides which ServerMaintenances may take their servers out of service.
func (f *planner) maintenances(b *bind.Result) []Maintenance {
	all := make([]Maintenance, 0, len(f.In.Desired.Maintenances))
	for _, name := range slices.Sorted(maps.Keys(f.In.Desired.Maintenances)) {
		m := f.In.Desired.Maintenances[name]
		server := f.Moment.Resolve(m.Spec.ServerRef.Name)
		j := Maintenance{Name: name, Manifest: m, Server: server}
		if f.Server(server) == nil {
			j.Unknown = b.UnknownServer(m.Spec.ServerRef.Name)
		} else {
			j.Refused = !laws.MayMaintain(m, f.Server(server).Server)
		}
		all = append(all, j)
	}
	return all
}

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/laws"
)

// ClaimStatus is what is so of a claim.
type ClaimStatus struct {
	Phase      string             `json:"phase"` // Bound, Unbound
	Server     model.ServerName   `json:"server,omitempty"`
	Tenant     string             `json:"tenant,omitempty"` // path of git.tenants below which it stands
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (v *view) claimDocument(c *bind.Claim) *Document {
	d := newDocument(c.Manifest.Identity().Kind, c.Manifest.Name)
	d.Metadata.Namespace, d.Metadata.Labels = c.Manifest.Namespace, c.Manifest.Labels
	d.Decided = c.Record
	if st := v.claimStatus(c); c.Manifest.BootConfiguration {
		d.Spec, d.Status = BootConfigurationSpec{*c.Manifest.Spec.ServerRef, c.Manifest.Spec.Image}, v.requestedStatus(c, st)
	} else {
		d.Spec, d.Status = c.Manifest.Spec, st
	}
	return d
}

// claimStatus is what has become of a claim.
func (v *view) claimStatus(c *bind.Claim) ClaimStatus {
	var st ClaimStatus
	if s := v.servers[c.Server]; s == nil {
		st = ClaimStatus{Phase: "Unbound", Conditions: []metav1.Condition{
			condition(typeBound, false, c.Why.Reason, c.Why.Text(), c.Record.FirstSeen),
		}}
	} else {
		st = ClaimStatus{Phase: "Bound", Server: s.Name, Conditions: v.server(s).boundConditions(c.Manifest)}
	}
	st.Tenant = c.Manifest.Tenant
	if a, listed := v.in.Desired.Absence(c.Name.Identity()); listed {
		why := laws.AbsentWhy("the claim", a)
		st.Conditions = append(st.Conditions, condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since))
	}
	return st
}

// heldClaim reports whether the server is kept for a claim of which nothing but the name
// is known, and how that is listed.
func (v *view) heldClaim(s *plan.Server) (model.Absence, bool) {
	if s.Record.Claim.Name == "" || v.in.Desired.Claims[s.Record.Claim.Name] != nil || s.Record.Release != nil {
		return model.Absence{}, false
	}
	return v.in.Desired.Absence(s.Record.Claim.Name.Identity())
}

// heldClaimDocument shows a claim that Git lacks though no commit took it away.
func (v *view) heldClaimDocument(s *plan.Server, a model.Absence) *Document {
	ns, name := model.SplitName(s.Record.Claim.Name)
	d := newDocument(s.Record.Claim.Name.Identity().Kind, name)
	d.Metadata.Namespace = ns
	why := laws.AbsentWhy("the claim", a)
	st := ClaimStatus{Phase: "Bound", Server: s.Name, Conditions: []metav1.Condition{
		condition(typeBound, true, reasonBound, "bound to server "+string(s.Name), s.Record.Claim.BoundAt),
		condition(typeReady, false, model.ReasonAbsentWithoutCommit, why.Text(), a.Since),
		condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since),
	}}
	if d.Status = st; s.Record.Claim.Name.IsBootConfiguration() {
		d.Status = BootConfigurationStatus{State: "Error", Server: s.Name, Conditions: st.Conditions}
	}
	if rec := v.in.Observed.Claims[s.Record.Claim.Name]; rec != nil {
		d.Decided = rec
	}
	return d
}

// boundConditions says how far a bound claim's server is.
func (s serverView) boundConditions(c *model.ServerClaim) []metav1.Condition {
	conds := []metav1.Condition{condition(typeBound, true, reasonBound, "bound to server "+string(s.Name), s.Record.Claim.BoundAt)}
	why := s.Why
	booted := s.Record.Install.Digest != "" && s.Unconfirmed == nil
	switch {
	case why.Reason == "" && c.Spec.Power == model.PowerOff:
		conds = append(conds, condition(typeReady, true, reasonPoweredOff, "", s.Record.Claim.BoundAt))
	case booted && why.Reason == "":
		conds = append(conds, condition(typeReady, true, reasonBooted, "", s.bootedAt()))
	case booted && s.RanWhenLastRead:
		conds = append(conds, condition(typeReady, true, reasonBooted, "", s.bootedAt()),
			condition(model.ConditionBMCReadable, false, why.Reason, why.Text(), why.Since))
	default:
		conds = append(conds, condition(typeReady, false, why.Reason, why.Text(), why.Since))
	}
	if c, telling := s.installedCondition(); telling {
		conds = append(conds, c)
	}
	if u := s.Unconfirmed; u != nil {
		conds = append(conds, condition(model.ReasonUnconfirmed, true, u.Reason, u.Text(), u.Since))
	}
	if f := s.CloudInit; f != nil {
		conds = append(conds, condition(model.ReasonCloudInitFailed, true, f.Reason, f.Text(), f.Since))
	}
	if e := s.Exposed; e != nil {
		conds = append(conds, condition(typeSecretExposed, true, e.Reason, e.Text(), e.Since))
	}
	if p := s.Pending; p != nil {
		conds = append(conds, condition(model.ReasonPendingReprovision, true, p.Reason, p.Text(), s.Record.Claim.BoundAt))
	}
	if why := s.Approval; why != nil {
		conds = append(conds, condition(typeMaintenanceApproved, false, why.Reason, why.Text(), why.Since))
	}
	return conds
}

// bootedAt is when the claim's server said that it had booted, or else was bound.
func (s serverView) bootedAt() time.Time {
	if b := s.in.Observed.BootStates[s.Name]; b != nil && s.Record.Boot.Ticket != nil && b.Ticket == s.Record.Boot.Ticket.ID {
		return b.ReceivedAt
	}
	return s.Record.Claim.BoundAt
}

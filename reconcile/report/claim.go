package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
)

// ClaimStatus is what is so of a claim.
type ClaimStatus struct {
	Overview
	Phase  string           `json:"phase"` // Bound, Unbound
	Server model.ServerName `json:"server,omitempty"`
	// Image is what the name of the claim's image meant when it got the server, or was last reprovisioned.
	Image      *model.CatalogImage `json:"image,omitempty"`
	Tenant     string              `json:"tenant,omitempty"` // path of git.tenants below which it stands
	Conditions []metav1.Condition  `json:"conditions,omitempty"`
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

func (v *view) claimStatus(c *bind.Claim) ClaimStatus {
	st := ClaimStatus{Overview: v.claimOverview(c), Tenant: c.Manifest.Tenant}
	if s := v.servers[c.Server]; s == nil {
		st.Phase, st.Conditions = "Unbound", []metav1.Condition{condition(typeBound, false, c.Why.Reason, c.Why.Text(), c.Record.FirstSeen)}
	} else {
		st.Phase, st.Server, st.Conditions = "Bound", s.Name, v.server(s).boundConditions(c.Manifest)
		st.Image = s.Record.Claim.Image
	}
	if a, listed := v.in.Desired.Absence(c.Name.Identity()); listed {
		why := laws.AbsentWhy("the claim", a)
		st.wait(why, v.waysOf(why, "", c.Name))
		st.Conditions = append(st.Conditions, condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since))
	}
	return st
}

func (v *view) claimOverview(c *bind.Claim) Overview {
	o := Overview{Summary: Summary{State: ClaimUnbound, Since: c.Record.FirstSeen.UTC().Truncate(time.Second), Image: c.Manifest.Spec.Image}}
	of := v.servers[c.Server]
	if of == nil {
		why := c.Why
		if why.Since.IsZero() {
			why.Since = c.Record.FirstSeen
		}
		o.wait(why, v.waysOf(why, "", c.Name))
		return o
	}
	s := v.server(of)
	state, since := s.claimState(c.Manifest)
	o.Summary.State, o.Summary.Since = state, since.UTC().Truncate(time.Second)
	o.Summary.Server = s.Name
	o.Summary.Addresses, o.Summary.AddressFrom = v.addressesOf(s)
	if user := s.loginUser(c.Manifest); user != "" && len(o.Summary.Addresses) > 0 && (state == ClaimBooted || state == ClaimUnconfirmed) {
		o.Summary.Login = "ssh " + user + "@" + o.Summary.Addresses[0]
	}
	o.wait(s.Why, v.waysOf(s.Why, s.Name, c.Name))
	for _, why := range []*proposal.Why{s.Approval, s.Pending, s.CloudInit} {
		if why != nil {
			o.wait(*why, ways{})
		}
	}
	return o
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
	o := Overview{Summary: Summary{State: ClaimBound, Since: s.Record.Claim.BoundAt.UTC().Truncate(time.Second), Server: s.Name}}
	o.wait(why, v.waysOf(why, s.Name, s.Record.Claim.Name))
	st := ClaimStatus{Overview: o, Phase: "Bound", Server: s.Name, Conditions: []metav1.Condition{
		condition(typeBound, true, reasonBound, "bound to server "+string(s.Name), s.Record.Claim.BoundAt),
		condition(typeReady, false, model.ReasonAbsentWithoutCommit, why.Text(), a.Since),
		condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since),
	}}
	if d.Status = st; s.Record.Claim.Name.IsBootConfiguration() {
		d.Status = BootConfigurationStatus{Overview: o, State: "Error", Server: s.Name, Conditions: st.Conditions}
	}
	if rec := v.in.Observed.Claims[s.Record.Claim.Name]; rec != nil {
		d.Decided = rec
	}
	return d
}

func (s serverView) boundConditions(c *model.ServerClaim) []metav1.Condition {
	conds := []metav1.Condition{condition(typeBound, true, reasonBound, "bound to server "+string(s.Name), s.Record.Claim.BoundAt)}
	why := s.Why
	switch state, since := s.claimState(c); {
	case why.Reason == "" && c.Spec.Power == model.PowerOff:
		conds = append(conds, condition(typeReady, true, reasonPoweredOff, "", s.Record.Claim.BoundAt))
	case state == ClaimBooted:
		conds = append(conds, condition(typeReady, true, reasonBooted, "", since))
		if why.Reason != "" {
			conds = append(conds, condition(model.ConditionBMCReadable, false, why.Reason, why.Text(), why.Since))
		}
	default:
		conds = append(conds, condition(typeReady, false, why.Reason, why.Text(), why.Since))
	}
	if c, telling := s.installedCondition(); telling {
		conds = append(conds, c)
	}
	if reason, message := s.keysProblem(c); reason != "" {
		conds = append(conds, condition(typeSSHKeys, false, reason, message, s.Record.Claim.BoundAt))
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

// keysProblem says why the claim's SSH keys are not those of its server, "" if they are. It requests nothing: keys are
// no reason for an install.
func (s serverView) keysProblem(c *model.ServerClaim) (reason, message string) {
	boot, _ := booting.BootOfClaim(s.in.Desired, c)
	t := s.Record.Boot.Ticket
	switch {
	case boot.SSHKeys != "" && boot.Config() == model.ThingScript:
		return reasonKeysUnused, "The claim's own iPXE script configures the server, and Ingot adds SSH keys to Ignition and cloud-init alone."
	case t == nil || t.Purpose != model.PurposeClaim || t.Claim != c.ClaimName() || s.Record.Install.Digest == "" && t.IgnitionAt.IsZero():
		return "", ""
	case t.SSHKeys != model.SSHKeysSum(boot.SSHKeys):
		return reasonKeysChanged, fmt.Sprintf("The SSH keys changed since the installation. The next one installs them: no action needed, "+
			"or give %s a new value of annotation %s.", c.Identity(), model.AnnotationReprovision)
	}
	return "", ""
}

// loginUser is the user to log in as to the system that was installed for a claim, "" if that is unknown.
func (s serverView) loginUser(c *model.ServerClaim) string {
	boot, _ := booting.BootOfClaim(s.in.Desired, c)
	if t := s.Record.Boot.Ticket; t != nil && t.Purpose == model.PurposeClaim {
		boot.Image = t.ImageName()
	}
	if named := s.Record.Claim.Image; named != nil && (boot.Image == named.Image || boot.Image == named.Name) {
		boot.User = named.User
	}
	return boot.LoginUser()
}

func (s serverView) claimState(c *model.ServerClaim) (state string, since time.Time) {
	off := s.Why.Reason == "" && c.Spec.Power == model.PowerOff
	switch {
	case s.Unconfirmed != nil:
		return ClaimUnconfirmed, s.Unconfirmed.Since
	case !off && s.Record.Install.Digest != "" && (s.Why.Reason == "" || s.RanWhenLastRead):
		return ClaimBooted, s.bootedAt()
	}
	return ClaimBound, s.Record.Claim.BoundAt
}

// bootedAt is when the claim's server said that it had booted, or else was bound.
func (s serverView) bootedAt() time.Time {
	if b := s.in.Observed.BootStates[s.Name]; b != nil && s.Record.Boot.Ticket != nil && b.Ticket == s.Record.Boot.Ticket.ID {
		return b.ReceivedAt
	}
	return s.Record.Claim.BoundAt
}

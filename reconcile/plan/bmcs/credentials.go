package bmcs

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// maxTried is how many refused credentials of a device are remembered.
const maxTried = 64

// logIn sets the credentials in the BMC's target: those in Git or, for a device that was found, those of
// the MAC prefix database.
func (s *Set) logIn(b *BMC) proposal.Why {
	t, name := &b.Target, b.Manifest.Spec.BMCSecretRef.Name
	secret := s.in.Desired.BMCSecrets[name]
	if b.Found {
		secret = s.in.foundSecret(string(b.Name))
	}
	switch {
	case secret != nil && !b.Found && len(s.in.Policy.Tenants) > 0 && secret.Tenant != b.Manifest.Tenant:
		return b.why(model.ReasonSecretMissing, fmt.Sprintf("BMCSecret %s belongs to %s, and a BMC below %s uses only those below %s "+
			"(git.tenants)", secret.Name, secret.Tenant, b.Manifest.Tenant, b.Manifest.Tenant), proposal.RackOperator)
	case secret != nil:
		t.Username, t.Password = secret.Values["username"].Reveal(), secret.Values["password"]
		return proposal.Why{}
	case !b.Found:
		return b.why(model.ReasonSecretMissing, s.in.Desired.SecretMissing(model.Identity{Kind: model.KindBMCSecret, Name: name}), proposal.RackOperator)
	}
	if c, ok := s.in.Policy.MACPrefixes.Credential(b.Endpoint.Record.Credential); ok {
		t.Username, t.Password, t.Default = c.Username, c.Password, true
		return proposal.Why{}
	}
	return s.tryNext(b)
}

// tryNext selects the first credential that the BMC has not refused. Each is tried once and with pauses,
// because most BMCs lock an account after a few wrong passwords.
func (s *Set) tryNext(b *BMC) proposal.Why {
	rec, entry, t := b.Endpoint.Record, b.Endpoint.Prefix, &b.Target
	remedy := fmt.Sprintf("a BMCSecret %s in Git is used at once", b.Name)
	next := slices.IndexFunc(entry.Credentials, func(c model.Credential) bool { return !slices.Contains(rec.Tried, c.ID) })
	var resume time.Time
	if n, p := len(rec.RefusedAt), s.in.Policy; n >= p.MaxRefused {
		resume = policy.PauseEnd(rec.RefusedAt[n-p.MaxRefused].Add(p.RefusedWithin), p.RefusedWithin, s.in.Now)
	}
	switch {
	case len(entry.Credentials) == 0:
		return b.Endpoint.why(model.ReasonCredentialsMissing, fmt.Sprintf("entry %s of the MAC prefix database has no credentials: add them; %s",
			entry.Prefix, remedy), proposal.RackOperator)
	case s.in.mayLack(model.KindBMCSecret, string(b.Name)):
		return b.Endpoint.why(model.ReasonManifestUnreadable, "its BMCSecret may stand in Git, in a manifest that cannot be read, so no password "+
			"is tried; see "+model.ReportProblems, proposal.RackOperator)
	case next < 0:
		return b.why(model.ReasonAuthenticationFailed, b.refusals()+", and there are no more; correct the entry, or write the right ones: "+remedy, proposal.RackOperator)
	case s.in.Now.Before(resume):
		b.resume = resume
		return b.why(model.ReasonAuthenticationFailed, fmt.Sprintf("%s; so that the account is not locked the next is tried at %s; %s",
			b.refusals(), resume.UTC().Format(time.RFC3339), remedy), proposal.RackOperator)
	}
	c := &entry.Credentials[next]
	t.Username, t.Password, t.Default, t.Trial = c.Username, c.Password, true, true
	b.trial = c.ID
	return proposal.Why{}
}

// refusals counts the credentials of its entry that the BMC refused.
func (b *BMC) refusals() string {
	left, entry := 0, b.Endpoint.Prefix
	for _, c := range entry.Credentials {
		if !slices.Contains(b.Endpoint.Record.Tried, c.ID) {
			left++
		}
	}
	return fmt.Sprintf("it refused %d of the %s that entry %s of the MAC prefix database has",
		len(entry.Credentials)-left, text.Plural(len(entry.Credentials), "credential"), entry.Prefix)
}

// newest is a list with one more at its end, at most n in all.
func newest[E any](list []E, next E, n int) []E {
	list = append(slices.Clone(list), next)
	return list[max(0, len(list)-n):]
}

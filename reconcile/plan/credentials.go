package plan

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// maxTried is how many refused credentials of a device are remembered.
const maxTried = 64

// credentials fills in what to log in to the BMC with: what Git says, or else, for
// a device that was recognised, what the MAC prefix database has for it.
func (f *fleet) credentials(b *bmcView, t *model.BMCTarget) proposal.Why {
	name := b.spec.Spec.BMCSecretRef.Name
	secret := f.in.Desired.BMCSecrets[name]
	if b.found {
		secret = f.foundSecret(string(b.name))
	}
	if secret != nil && !b.found {
		if why := f.strangers(b, secret); why != "" {
			return proposal.Why{Reason: model.ReasonSecretMissing, Message: why, Since: b.rec.Since, Actor: proposal.RackOperator}
		}
	}
	switch {
	case secret != nil:
		t.Username, t.Password = secret.Values["username"].Reveal(), secret.Values["password"]
		return proposal.Why{}
	case !b.found:
		return proposal.Why{Reason: model.ReasonSecretMissing, Message: f.in.Desired.SecretMissing(model.Identity{Kind: model.KindBMCSecret, Name: name}), Since: b.rec.Since, Actor: proposal.RackOperator}
	}
	if c, ok := f.in.Policy.MACPrefixes.Credential(b.endpoint.rec.Credential); ok {
		t.Username, t.Password, t.Default = c.Username, c.Password, true
		return proposal.Why{}
	}
	return f.trial(b, t)
}

// trial has the first credential tried that the BMC has not refused, once each and
// with pauses, for most BMCs lock an account after a few wrong passwords.
func (f *fleet) trial(b *bmcView, t *model.BMCTarget) proposal.Why {
	rec, entry := b.endpoint.rec, b.endpoint.entry
	remedy := fmt.Sprintf("a BMCSecret %s in Git is used at once", b.name)
	next := slices.IndexFunc(entry.Credentials, func(c model.Credential) bool { return !slices.Contains(rec.Tried, c.ID) })
	b.resume = f.resume(rec)
	switch {
	case len(entry.Credentials) == 0:
		b.resume = time.Time{}
		return proposal.Why{Reason: model.ReasonCredentialsMissing, Message: fmt.Sprintf("entry %s of the MAC prefix database has no credentials: add them; %s", entry.Prefix, remedy), Since: b.endpoint.rec.Since, Actor: proposal.RackOperator}
	case f.outdated() || f.maybeUnreadable(model.KindBMCSecret, string(b.name)):
		b.resume = time.Time{}
		return proposal.Why{Reason: model.ReasonManifestUnreadable, Message: "its BMCSecret may stand in Git, in a manifest that cannot be read, so no password is tried; see " + model.ReportProblems, Since: b.endpoint.rec.Since, Actor: proposal.RackOperator}
	case next < 0:
		b.resume = time.Time{}
		return proposal.Why{Reason: model.ReasonAuthenticationFailed, Message: b.refusals() + ", and there are no more; correct the entry, or write the right ones: " + remedy, Since: b.rec.Since, Actor: proposal.RackOperator}
	case !b.resume.IsZero():
		return proposal.Why{Reason: model.ReasonAuthenticationFailed, Message: fmt.Sprintf("%s; so that the account is not locked the next is tried at %s; %s",
			b.refusals(), b.resume.UTC().Format(time.RFC3339), remedy), Since: b.rec.Since, Actor: proposal.RackOperator}
	}
	c := &entry.Credentials[next]
	t.Username, t.Password, t.Default, t.Trial = c.Username, c.Password, true, true
	b.trial = c.ID
	return proposal.Why{}
}

// resume is when a credential may be tried again, zero if one may now.
func (f *fleet) resume(rec *model.EndpointRecord) time.Time {
	n, p := len(rec.RefusedAt), f.in.Policy
	if n < p.MaxRefused {
		return time.Time{}
	}
	if at := f.pauseEnd(rec.RefusedAt[n-p.MaxRefused].Add(p.RefusedWithin), p.RefusedWithin); f.in.Now.Before(at) {
		return at
	}
	return time.Time{}
}

// refusals counts the credentials of its entry that the BMC refused.
func (b *bmcView) refusals() string {
	refused := 0
	for _, c := range b.endpoint.entry.Credentials {
		if slices.Contains(b.endpoint.rec.Tried, c.ID) {
			refused++
		}
	}
	return fmt.Sprintf("it refused %d of the %s that entry %s of the MAC prefix database has",
		refused, text.Plural(len(b.endpoint.entry.Credentials), "credential"), b.endpoint.entry.Prefix)
}

// credentialAccepted is the device's record once its BMC took a credential.
func credentialAccepted(rec *model.EndpointRecord, credential string) *model.EndpointRecord {
	next := *rec
	next.Credential = credential
	return &next
}

// credentialRefused is the device's record once its BMC refused a credential.
func credentialRefused(rec *model.EndpointRecord, credential string, now time.Time, p proposal.Policy) *model.EndpointRecord {
	next := *rec
	next.Tried = newest(append(slices.Clone(rec.Tried), credential), maxTried)
	next.RefusedAt = newest(append(slices.Clone(rec.RefusedAt), now), p.MaxRefused)
	return &next
}

func newest[E any](list []E, most int) []E { return list[max(0, len(list)-most):] }

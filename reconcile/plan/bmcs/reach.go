package bmcs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// reach sets the BMC's target, and says why its servers must wait: it cannot be reached, or it was not
// read since its address changed, so that another machine may have that address (B34).
func (s *Set) reach(b *BMC) proposal.Why {
	b.Target = model.BMCTarget{
		Name: b.Name, Scheme: cmp.Or(b.Manifest.Spec.Protocol.Scheme, "https"), Fingerprint: b.Record.Fingerprint, Hostname: b.Manifest.Spec.Hostname,
		TLSMinimum: b.Manifest.Annotations[model.AnnotationTLSMinimum],
	}
	if b.isIgnored() {
		return b.why(model.ReasonIgnored, "suspended by annotation "+model.AnnotationOperation+": ignore", proposal.RackOperator)
	}
	ip, why := s.ip(b)
	if why.Reason != "" {
		return why
	}
	if err := s.refused(b, ip); err != nil {
		return b.why(model.ReasonAddressNotAllowed, err.Error(), proposal.RackOperator)
	}
	b.Target.Address = b.Manifest.Spec.Protocol.Address(ip)
	if why := s.logIn(b); why.Reason != "" {
		return why
	}
	b.recognise(s.in.DigestKey)
	switch rec := b.Record; {
	case rec.Reason == model.ReasonAuthenticationFailed && b.trial != "":
		return b.why(rec.Reason, b.refusals()+"; the next is tried", proposal.ActorNone)
	case rec.Reason == model.ReasonAuthenticationFailed && b.Target.Accepted.Refused.Count > 0:
		return b.refusedForNow()
	case rec.Reason == model.ReasonAuthenticationFailed:
		return b.why(rec.Reason, fmt.Sprintf("%s; they are tried again every %s", rec.LastError, minutes(model.RefusedPauseMax)), proposal.RackOperator)
	case rec.Reason != "":
		return b.why(rec.Reason, fmt.Sprintf("%s; it is asked again at least every %s", rec.LastError, seconds(s.in.Policy.BMCBackoffMax)), model.BMCAdvice[rec.Reason].Actor)
	case b.Facts == nil || rec.Address == "":
		return b.why(model.ReasonPending, "the BMC has not answered yet", proposal.ActorNone)
	case rec.Address != b.Target.Address:
		return b.why(model.ReasonPending, fmt.Sprintf("its address is %s now, no longer %s: what answers there is checked first",
			b.Target.Address, rec.Address), proposal.ActorNone)
	case b.IsAnother():
		return b.why(model.ReasonIdentityMismatch, fmt.Sprintf("at %s answers the BMC with UUID %s, and spec.bmcUUID of BMC %s (%s) is %s: nothing "+
			"is done to its servers until these agree; correct bmcUUID in Git, or where the BMC is looked for",
			rec.Address, b.Facts.UUID, b.Name, b.Manifest.Source, b.Manifest.Spec.BMCUUID), proposal.RackOperator)
	}
	return proposal.Why{}
}

// refused says why nothing is sent to a BMC at an address, nil if it may be. Its client checks resolved host names.
func (s *Set) refused(b *BMC, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil //nolint:nilerr // a host name
	}
	if err := s.in.Policy.BMCNetworks.Refuse(addr, b.Target.Scheme); err != nil {
		return err
	}
	of := s.in.Policy.Tenants.At(b.Manifest.Tenant)
	if of == nil {
		return nil
	}
	if why := of.Refuse(b.Manifest.Identity()); b.Manifest.Within != "" && why != "" {
		return fmt.Errorf("spec.bmc of Server %s describes a BMC, so nothing is sent there: %s", b.Manifest.Within, why)
	}
	if !of.MayReach(addr) {
		return fmt.Errorf("%s is in none of the bmcNetworks of %s (git.tenants), so nothing is sent there: correct the address, or add %s "+
			"to them in Ingot's configuration", addr, of.Path, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return nil
}

func (s *Set) ip(b *BMC) (string, proposal.Why) {
	switch e := b.Endpoint; {
	case b.Manifest.Spec.Access != nil:
		return b.Manifest.Spec.Access.IP, proposal.Why{}
	case b.Found && e.Why.Reason != "":
		return "", e.Why
	case e != nil:
		return e.IP, e.Lost()
	}
	what := "Endpoint"
	if ref := b.Manifest.Spec.EndpointRef; ref != nil {
		what += " " + ref.Name
		if why := s.devices.awaits(s.in.Desired.Endpoints[ref.Name]); why.Reason != "" {
			return "", b.why(why.Reason, what+": "+why.Message, why.Actor)
		}
	}
	return "", b.why(model.ReasonEndpointMissing, what+" is not in Git, and no device of that name was found", proposal.RackOperator)
}

// recognise notes in the BMC's target whether it accepted its credentials last.
func (b *BMC) recognise(key model.DigestKey) {
	t, rec := &b.Target, b.Record
	b.credentials = key.Credentials(t.Username, t.Password, rec.Accepted)
	if b.credentials != "" && b.credentials == rec.Accepted && !t.Trial {
		t.Accepted = model.Acceptance{Here: true, Refused: rec.Refused}
	}
}

// areAccepted reports whether a BMC accepted credentials last, by their fingerprint.
func (s *Set) areAccepted(credentials string) bool {
	if s.accepted == nil {
		s.accepted = make(map[string]bool, len(s.in.Observed.BMCs))
		for _, rec := range s.in.Observed.BMCs {
			s.accepted[rec.Accepted] = true
		}
	}
	return credentials != "" && s.accepted[credentials]
}

// refusedForNow says why a BMC may refuse the credentials that it accepted before, and when it is asked again.
func (b *BMC) refusedForNow() proposal.Why {
	rec := b.Record
	often, seldom := seconds(model.RefusedPause), minutes(model.RefusedPauseMax)+"; annotation "+model.AnnotationOperation+": "+model.OperationRetry+"#… asks it at once"
	if rec.Refused.Count <= model.RefusedTries {
		return b.why(rec.Reason, fmt.Sprintf("it refuses the credentials that it accepted before: it is probably starting, or its account is locked. It is asked again every "+
			"%s until %s, then every %s", often, text.Time(rec.Since.Add(model.RefusedTries*model.RefusedPause)), seldom), proposal.ActorNone)
	}
	return b.why(rec.Reason, fmt.Sprintf("it has refused the credentials that it accepted before more than %d times: unlock its account, or restart the BMC; if its "+
		"password was changed, commit it. It is asked again every %s", model.RefusedTries, seldom), proposal.RackOperator)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

func minutes(d time.Duration) string { return fmt.Sprintf("%.0f min", d.Minutes()) }

// maxTried is how many refused credentials of a device are remembered.
const maxTried = 64

// logIn sets the credentials in the BMC's target: those in Git, or those of the MAC prefix database.
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
			"is tried; see "+model.ReportFleet, proposal.RackOperator)
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

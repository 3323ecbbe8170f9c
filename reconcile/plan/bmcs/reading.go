package bmcs

import (
	"cmp"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// A Reading is one reading of a BMC.
type Reading struct {
	Target     model.BMCTarget
	Then       *model.BMCRecord
	Known      *model.BMCFacts // the BMC that must answer at a new address; nil if any BMC may
	Credential string          // the one of the MAC prefix database that is tried; "" = none is

	old    *model.BMCRecord      // nil for a BMC that was never read
	device *model.EndpointRecord // whose credential is tried, nil if none is
	all    map[model.BMCName]*model.BMCFacts
	policy *policy.Options
	uuid   string // in its manifest; "" = none

	credentials string // the fingerprint of those in Target
}

// reading is the next reading of a BMC. The pinned certificate is dropped when Git requests a retry. It is
// also dropped when another one is shown, and the pinned one belongs to another BMC than Git names by UUID.
func (s *Set) reading(b *BMC) *Reading {
	o, rec := s.in.Observed, *b.Record
	if b.retryAsked() {
		_, rec.HandledOperation = b.Manifest.Operation()
	}
	if b.retryAsked() || rec.Reason == model.ReasonCertificateChanged && b.IsAnother() {
		rec.Fingerprint = ""
	}
	rec.Address = b.Target.Address
	m := &Reading{
		Target: b.Target, Then: &rec, Credential: b.trial,
		old: o.BMCs[b.Name], all: o.BMCFacts, policy: s.in.Policy, uuid: b.Manifest.Spec.BMCUUID, credentials: b.credentials,
	}
	m.Target.Fingerprint, m.Target.Retry = rec.Fingerprint, b.retryAsked()
	if !b.Target.Accepted.Here && !b.Target.Trial {
		m.Target.Accepted.Elsewhere = s.areAccepted(b.credentials)
	}
	if b.trial != "" {
		m.device = o.Endpoints[b.Endpoint.Name]
	}
	if b.Record.Address != "" && b.Record.Address != rec.Address && !b.retryAsked() {
		m.Known = b.Facts
	}
	return m
}

// readable reports whether the BMC may be read, by its manifest and address.
func (b *BMC) readable() bool {
	if b.taken || b.Target.Address == "" || b.isIgnored() || b.Found && b.Endpoint.Record != b.Endpoint.old {
		return false
	}
	return b.Target.Username != "" || !b.Target.Password.IsZero()
}

// due is when a BMC is read next. A contradiction to the records of its servers is checked within seconds.
func (s *Set) due(b *BMC) time.Time {
	rec, p := b.Record, s.in.Policy
	confirm, unconfirmed := s.in.Unconfirmed[b.Name]
	confirm = confirm.Add(p.SettleMax)
	pause := s.pauseEnd(rec)
	switch {
	case rec.Reason != "" && s.remedied(b):
		return s.in.Now
	case rec.Reason != "" && confirm.Before(pause):
		return pause
	case unconfirmed:
		return confirm
	case b.reread == RereadNow || rec.Reason != "" || b.Facts == nil || rec.Address != b.Target.Address || b.unpinned():
		return s.in.Now
	case b.reread == RereadOften || b.IsAnother() || s.in.Now.Before(b.startsUntil(p)):
		return b.ReadAt.Add(p.PollInterval)
	}
	return b.ReadAt.Add(p.RefreshInterval - time.Duration(policy.Jitter(b.Name)/5*float64(p.RefreshInterval)))
}

// pauseEnd is when the pause of a BMC that failed ends.
func (s *Set) pauseEnd(rec *model.BMCRecord) time.Time {
	longest := s.in.Policy.BMCBackoffMax
	if rec.NotBefore.Equal(rec.Refused.AskAt()) {
		longest = model.RefusedPauseMax
	}
	return policy.PauseEnd(rec.NotBefore, longest, s.in.Now)
}

// startsUntil is until when a BMC that lacks something is read as often as one that is starting; zero if it lacks nothing.
func (b *BMC) startsUntil(p *policy.Options) time.Time {
	if b.Facts == nil || !b.Facts.Starting {
		return time.Time{}
	}
	return b.Record.Since.Add(p.RefreshInterval)
}

// unpinned reports whether no certificate is pinned though the BMC that Git names answered.
func (b *BMC) unpinned() bool {
	return b.Record.Fingerprint == "" && b.Facts.Fingerprint != "" && !b.IsAnother()
}

// remedied reports whether the device has moved since the BMC failed, or Git replaced the refused credentials.
func (s *Set) remedied(b *BMC) bool {
	replaced := b.Record.Refused.Count > 0 && !b.Target.Accepted.Here
	if replaced || b.Endpoint == nil {
		return replaced
	}
	failed := b.Record.NotBefore.Add(-policy.BMCBackoff(b.Name, b.Record.Failures, *s.in.Policy))
	if b.Record.NotBefore.Equal(b.Record.Refused.AskAt()) {
		failed = b.Record.Refused.At
	}
	rec := b.Endpoint.Record
	moved := b.Record.Address != b.Target.Address && rec.Since.After(failed)
	refused := len(rec.RefusedAt) > 0 && rec.RefusedAt[len(rec.RefusedAt)-1].Equal(failed)
	return moved || refused && !b.Target.Default
}

func (b *BMC) retryAsked() bool {
	name, value := b.Manifest.Operation()
	return name == model.OperationRetry && value != b.Record.HandledOperation
}

// Settle returns the result of the reading. The record of its device has no other writer meanwhile.
func (m *Reading) Settle(a proposal.Answer, now time.Time) proposal.Settled {
	f := a.Failed
	if f != nil && f.Kind == proposal.FailureStopped {
		return proposal.Settled{Outcome: proposal.MoveStopped, Err: f.Text}
	}
	if f == nil && !model.SameUUID(m.uuid, a.BMC.UUID) { // else Git names this BMC
		f = checkIdentity(m.Target.Address, m.Known, a.BMC, m.all)
	}
	if f != nil {
		return m.failed(f, now)
	}
	s := proposal.Settled{Outcome: proposal.MoveDone, News: true}
	rec := *m.Then
	if m.old == nil || m.old.Reason != "" || m.old.Since.IsZero() {
		rec.Since = now
	}
	rec.BMCScratch = model.BMCScratch{Since: rec.Since, Accepted: cmp.Or(m.credentials, rec.Accepted)}
	if !isAnother(m.uuid, a.BMC) {
		rec.Fingerprint = cmp.Or(rec.Fingerprint, a.BMC.Fingerprint)
	}
	s.BMCs, s.BMCFacts = append(s.BMCs, &rec), append(s.BMCFacts, a.BMC)
	if m.device != nil {
		s.Endpoints = append(s.Endpoints, proposal.Changed(m.device, func(e *model.EndpointRecord) { e.Credential = m.Credential }))
	}
	return s
}

// failed is the result of a failed reading. The first time and text of a reason are kept.
func (m *Reading) failed(f *proposal.Failure, now time.Time) proposal.Settled {
	s := proposal.Settled{Outcome: proposal.MoveFailed, Err: f.Text, News: true}
	rec := *cmp.Or(m.old, &model.BMCRecord{Name: m.Then.Name})
	rec.HandledOperation, rec.Fingerprint = m.Then.HandledOperation, m.Then.Fingerprint
	rec.Failures++
	if reason := cmp.Or(f.Reason, model.ReasonConnectionFailed); rec.Reason != reason {
		rec.Reason, rec.LastError, rec.Since = reason, f.Text, now
	}
	rec.NotBefore = now.Add(policy.BMCBackoff(rec.Name, rec.Failures, *m.policy))
	refused := &rec.Refused
	if !m.Target.Accepted.Here {
		*refused = model.Refusals{}
	} else if rec.Reason == model.ReasonAuthenticationFailed {
		if m.Target.Retry || !now.Before(refused.AskAt()) || refused.At.After(now) { // else nothing was sent
			*refused = model.Refusals{Count: refused.Count + 1, At: now}
		}
		rec.NotBefore = refused.AskAt()
	}
	s.BMCs = append(s.BMCs, &rec)
	if m.device != nil && rec.Reason == model.ReasonAuthenticationFailed {
		device := *m.device
		device.Tried = newest(device.Tried, m.Credential, maxTried)
		device.RefusedAt = newest(device.RefusedAt, now, m.policy.MaxRefused)
		s.Endpoints = append(s.Endpoints, &device)
	}
	return s
}

package plan

import (
	"cmp"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// knownBMC is what was known of a BMC when its reading was planned.
type knownBMC struct {
	old      *model.BMCRecord      // nil for one that was never read
	endpoint *model.EndpointRecord // of the device whose credential is tried, nil if none is
	all      map[model.BMCName]*model.BMCFacts
	policy   *proposal.Policy
	uuid     string // that its manifest gives; "" = none
}

// Settle judges what became of the reading of a BMC. Nobody else writes the record of its
// device meanwhile.
func (m *BMCMove) Settle(a proposal.Answer, now time.Time) proposal.Settled {
	f := a.Failed
	if f != nil && f.Kind == proposal.FailureStopped {
		return proposal.Settled{Outcome: proposal.MoveStopped, Err: f.Text}
	}
	if f == nil && !model.SameUUID(m.was.uuid, a.BMC.UUID) { // else Git says that it is the BMC
		f = checkIdentity(m.Target.Address, m.Known, a.BMC, m.was.all)
	}
	if f != nil {
		return m.failed(f, now)
	}
	s := proposal.Settled{Outcome: proposal.MoveDone, News: true}
	rec := *m.Then
	if m.was.old == nil || m.was.old.Reason != "" {
		rec.Since = now
	}
	rec.Failures, rec.NotBefore, rec.Reason, rec.LastError = 0, time.Time{}, "", ""
	if !isAnother(m.was.uuid, a.BMC) {
		rec.Fingerprint = cmp.Or(rec.Fingerprint, a.BMC.Fingerprint)
	}
	s.BMCs, s.BMCFacts = append(s.BMCs, &rec), append(s.BMCFacts, a.BMC)
	if m.was.endpoint != nil {
		s.Endpoints = append(s.Endpoints, credentialAccepted(m.was.endpoint, m.Credential))
	}
	return s
}

// failed notes that a BMC could not be read, or is another one. Since when and why stays
// as it was told first, for as long as the reason is the same.
func (m *BMCMove) failed(f *proposal.Failure, now time.Time) proposal.Settled {
	s := proposal.Settled{Outcome: proposal.MoveFailed, Err: f.Text, News: true}
	rec := model.BMCRecord{Name: m.Then.Name}
	if m.was.old != nil {
		rec = *m.was.old
	}
	rec.HandledOperation, rec.Fingerprint = m.Then.HandledOperation, m.Then.Fingerprint
	rec.Failures++
	rec.NotBefore = now.Add(proposal.Backoff(rec.Name, rec.Failures, *m.was.policy))
	reason := cmp.Or(f.Reason, model.ReasonConnectionFailed)
	if rec.Reason != reason {
		rec.Reason, rec.LastError, rec.Since = reason, f.Text, now
	}
	s.BMCs = append(s.BMCs, &rec)
	if m.was.endpoint != nil && reason == model.ReasonAuthenticationFailed {
		s.Endpoints = append(s.Endpoints, credentialRefused(m.was.endpoint, m.Credential, now, *m.was.policy))
	}
	return s
}

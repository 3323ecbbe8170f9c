package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// bmcOf is the record of BMC b1.
func bmcOf(changes ...func(*model.BMCRecord)) *model.BMCRecord {
	rec := &model.BMCRecord{Name: "b1", Address: "192.0.2.1:443", Fingerprint: "f", Since: plannedAt}
	for _, change := range changes {
		change(rec)
	}
	return rec
}

// refusing is a BMC that could not be used so many times in a row, the last just now.
func refusing(times int, reason model.Reason, text string, since time.Time) func(*model.BMCRecord) {
	return func(rec *model.BMCRecord) {
		rec.Failures, rec.Reason, rec.LastError, rec.Since = times, reason, text, since
		rec.NotBefore = settleNow.Add(proposal.Backoff(rec.Name, times, proposal.DefaultPolicy()))
	}
}

func TestWhatBecomesOfTheReadingOfABMC(t *testing.T) {
	const trial = "c1"
	read := &model.BMCFacts{Name: "b1", UUID: "u1", Fingerprint: "new"}
	answered, down := proposal.Answer{BMC: read}, failed(proposal.FailureUnsure, model.ReasonConnectionFailed, "refused")
	denied := failed(proposal.FailureUnsure, model.ReasonAuthenticationFailed, "wrong password")
	device := &model.EndpointRecord{Name: "b1", Tried: []string{"c0"}, RefusedAt: []time.Time{plannedAt}}
	unread := func(rec *model.BMCRecord) { rec.Fingerprint = "" }
	silent := func(times int) func(*model.BMCRecord) {
		return refusing(times, model.ReasonConnectionFailed, "earlier", plannedAt)
	}
	retried := func(rec *model.BMCRecord) { rec.HandledOperation = "retry#1" }
	elsewhere := func(rec *model.BMCRecord) { rec.Address = "192.0.2.9:443" }
	tests := map[string]struct {
		old, then *model.BMCRecord // then: nil = as it was
		known     *model.BMCFacts
		trial     bool // a credential of the MAC prefix database is tried
		answer    proposal.Answer
		want      proposal.Settled
	}{
		"a BMC that answers for the first time has its certificate pinned": {
			then: bmcOf(unread), answer: answered,
			want: proposal.Settled{Outcome: proposal.MoveDone, News: true, Changes: proposal.Changes{
				BMCs:     []*model.BMCRecord{bmcOf(func(rec *model.BMCRecord) { rec.Fingerprint, rec.Since = "new", settleNow })},
				BMCFacts: []*model.BMCFacts{read},
			}},
		},
		"one that answers as before keeps its certificate and its time": {
			old: bmcOf(), answer: answered,
			want: proposal.Settled{Outcome: proposal.MoveDone, News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf()}, BMCFacts: []*model.BMCFacts{read},
			}},
		},
		"one that answers again is usable since then": {
			old: bmcOf(silent(1)), answer: answered,
			want: proposal.Settled{Outcome: proposal.MoveDone, News: true, Changes: proposal.Changes{
				BMCs:     []*model.BMCRecord{bmcOf(func(rec *model.BMCRecord) { rec.Since = settleNow })},
				BMCFacts: []*model.BMCFacts{read},
			}},
		},
		"one that does not answer is tried again after a pause": {
			old: bmcOf(), answer: down,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "refused", News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf(refusing(1, model.ReasonConnectionFailed, "refused", settleNow))},
			}},
		},
		"one that goes on not to answer is told of as of the first time": {
			old: bmcOf(silent(1)), answer: down,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "refused", News: true, Changes: proposal.Changes{BMCs: []*model.BMCRecord{bmcOf(silent(2))}}},
		},
		"one of an error that nobody knows counts as not reached": {
			old: bmcOf(), answer: failed(proposal.FailureUnsure, "", "EOF"),
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "EOF", News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf(refusing(1, model.ReasonConnectionFailed, "EOF", settleNow))},
			}},
		},
		"a retry that fails is handled all the same, and the certificate is forgotten": {
			old: bmcOf(), then: bmcOf(unread, retried), answer: down,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "refused", News: true, Changes: proposal.Changes{BMCs: []*model.BMCRecord{
				bmcOf(unread, refusing(1, model.ReasonConnectionFailed, "refused", settleNow), retried),
			}}},
		},
		"another BMC at its new address is not taken for it, and the address is not kept": {
			old:   bmcOf(elsewhere),
			then:  bmcOf(),
			known: &model.BMCFacts{Name: "b1", UUID: "u0"}, answer: answered,
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, News: true, Err: identityFailure,
				Changes: proposal.Changes{BMCs: []*model.BMCRecord{
					bmcOf(refusing(1, model.ReasonIdentityMismatch, identityFailure, settleNow), elsewhere),
				}},
			},
		},
		"a credential that the BMC takes is that of its device": {
			old: bmcOf(), trial: true, answer: answered,
			want: proposal.Settled{Outcome: proposal.MoveDone, News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf()}, BMCFacts: []*model.BMCFacts{read},
				Endpoints: []*model.EndpointRecord{{Name: "b1", Tried: device.Tried, RefusedAt: device.RefusedAt, Credential: trial}},
			}},
		},
		"a credential that the BMC refuses is not tried again": {
			old: bmcOf(), trial: true, answer: denied,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "wrong password", News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf(refusing(1, model.ReasonAuthenticationFailed, "wrong password", settleNow))},
				Endpoints: []*model.EndpointRecord{{
					Name: "b1", Tried: []string{"c0", trial}, RefusedAt: []time.Time{plannedAt, settleNow},
				}},
			}},
		},
		"a credential that a BMC said nothing of stays to be tried": {
			old: bmcOf(), trial: true, answer: down,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "refused", News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf(refusing(1, model.ReasonConnectionFailed, "refused", settleNow))},
			}},
		},
		"credentials of Git that are refused are no matter of the device": {
			old: bmcOf(), answer: denied,
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "wrong password", News: true, Changes: proposal.Changes{
				BMCs: []*model.BMCRecord{bmcOf(refusing(1, model.ReasonAuthenticationFailed, "wrong password", settleNow))},
			}},
		},
		"a stop leaves nothing": {
			old: bmcOf(), trial: true, answer: failed(proposal.FailureStopped, model.ReasonAuthenticationFailed, "context canceled"),
			want: proposal.Settled{Outcome: proposal.MoveStopped, Err: "context canceled"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := proposal.DefaultPolicy()
			m := &BMCMove{
				Target: model.BMCTarget{Address: "192.0.2.1:443"}, Then: tc.then, Known: tc.known,
				was: knownBMC{old: tc.old, policy: &p},
			}
			if m.Then == nil {
				m.Then = tc.old
			}
			if tc.trial {
				m.Endpoint, m.Credential, m.was.endpoint = "b1", trial, device
			}
			if diff := cmp.Diff(tc.want, m.Settle(tc.answer, settleNow)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const identityFailure = "at 192.0.2.1:443 answers the BMC with UUID u1 and serial number unknown, " +
	"and not the one with UUID u0 and serial number unknown: nothing is done to its servers until that one answers; " +
	"if it was replaced, set annotation metal.ironcore.dev/operation: retry#1 on BMC b1 in Git"

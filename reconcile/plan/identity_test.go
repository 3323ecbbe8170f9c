package plan

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Why a BMC's servers cannot be read is told as it is: a refused password asks for
// something else than a BMC that does not answer.
func TestWhyAReadingFailed(t *testing.T) {
	tests := map[string]struct{ server, bmc string }{
		"":                               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"ConnectionFailed":               {model.ReasonBMCUnreachable, "ConnectionFailed"},
		"UnknownError":                   {model.ReasonBMCUnreachable, "ConnectionFailed"},
		model.ReasonAuthenticationFailed: {model.ReasonAuthenticationFailed, model.ReasonAuthenticationFailed},
		model.ReasonCertificateChanged:   {model.ReasonCertificateChanged, model.ReasonCertificateChanged},
		model.ReasonHalfAnswer:           {model.ReasonHalfAnswer, model.ReasonHalfAnswer},
		model.ReasonIdentityMismatch:     {model.ReasonIdentityMismatch, ""},
		model.ReasonIdentityUnknown:      {model.ReasonIdentityUnknown, ""},
	}
	for reason, want := range tests {
		b := &bmcView{name: "b", spec: &model.BMC{}}
		s := &server{name: "s", rec: &model.ServerRecord{RecordIdentity: model.RecordIdentity{BMC: "b"}}, bmc: b, reading: &proposal.Reading{Failures: 2, Reason: reason}}
		f := withBMCs(&fleet{servers: []*server{s}}, b)
		if got := s.unreachable().Reason; got != want.server {
			t.Errorf("%q: the server says %s, want %s", reason, got, want.server)
		}
		if got := f.judgeBMCs()[0].Why.Reason; got != want.bmc {
			t.Errorf("%q: the BMC says %q, want %q", reason, got, want.bmc)
		}
	}
}

// A BMC that was read a moment ago is read again at once when it shows another machine
// since, and then no more often than servers are.
func TestABMCThatShowsAnotherMachineIsReadAtOnce(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		read time.Time
		want time.Time
	}{
		"before that was seen": {now.Add(-10 * time.Second), now},
		"after that was seen":  {now, now.Add(time.Minute)},
	} {
		facts := &model.BMCFacts{Name: "b", Systems: []model.SystemFact{{URI: "/1", UUID: "u"}}}
		b := &bmcView{name: "b", facts: facts, rec: &model.BMCRecord{Name: "b"}, readAt: tt.read}
		f := &fleet{in: &Input{Now: now, Policy: proposal.DefaultPolicy()}}
		s := &server{
			fleet: f, bmc: b, rec: &model.ServerRecord{RecordIdentity: model.RecordIdentity{BMC: "b", SystemURI: "/1", UUID: "u"}},
			reading: &proposal.Reading{Failures: 1, Reason: model.ReasonIdentityMismatch, Since: now.Add(-time.Second)},
		}
		b.spec = &model.BMC{}
		f.blocked(s)
		if got := f.bmcDue(b); !got.Equal(tt.want) {
			t.Errorf("read %s: due at %v, want %v", name, got, tt.want)
		}
	}
}

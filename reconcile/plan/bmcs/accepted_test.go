package bmcs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

var fingerprints = model.NewDigestKey([]byte(strings.Repeat("k", 32)))

const sharedPassword = "calvin-and-hobbes"

// sharing is an input with BMC b1 and b2, which have one BMCSecret.
func sharing(change func(b1, b2 *model.BMCRecord)) *Input {
	var objects []model.Object
	for _, name := range []string{"b1", "b2"} {
		objects = append(objects, &model.BMC{Meta: model.Meta{Name: name}, Spec: model.BMCSpec{
			Access: &model.InlineEndpoint{IP: "192.0.2.1"}, Protocol: model.Protocol{Name: "Redfish", Port: 443}, BMCSecretRef: model.LocalRef{Name: "all"},
		}})
	}
	in := inputOf(append(objects, &model.BMCSecret{Meta: model.Meta{Name: "all"}, Values: map[string]model.Sensitive{
		"username": model.NewSensitive("root"), "password": model.NewSensitive(sharedPassword),
	}}))
	in.DigestKey = fingerprints
	b1, b2 := bmcOf(), bmcOf(func(rec *model.BMCRecord) { rec.Name = "b2" })
	change(b1, b2)
	in.Observed.BMCs["b1"], in.Observed.BMCs["b2"] = b1, b2
	in.Observed.BMCFacts["b1"], in.Observed.BMCFacts["b2"] = &model.BMCFacts{Name: "b1", Fingerprint: "f"}, &model.BMCFacts{Name: "b2", Fingerprint: "f"}
	in.Read = map[model.BMCName]time.Time{"b1": settleNow, "b2": settleNow}
	return in
}

func TestAcceptedCredentials(t *testing.T) {
	same := fingerprints.Credentials("root", model.NewSensitive(sharedPassword), "")
	other := fingerprints.Credentials("root", model.NewSensitive("another"), "")
	for name, tc := range map[string]struct {
		b1, b2 string // accepted by these
		want   model.Acceptance
	}{
		"by no BMC":                     {"", "", model.Acceptance{}},
		"by this one":                   {same, "", model.Acceptance{Here: true, Refused: model.Refusals{Count: 3, At: plannedAt}}},
		"by another":                    {"", same, model.Acceptance{Elsewhere: true}},
		"by another, this one had some": {other, same, model.Acceptance{Elsewhere: true}},
		"others by both":                {other, other, model.Acceptance{}},
	} {
		t.Run(name, func(t *testing.T) {
			in := sharing(func(b1, b2 *model.BMCRecord) {
				b1.Accepted, b1.Refused, b2.Accepted = tc.b1, model.Refusals{Count: 3, At: plannedAt}, tc.b2
			})
			in.Read = nil
			if diff := gocmp.Diff(tc.want, Load(in).Propose().Readings["b1"].Target.Accepted); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if same == other || len(same) != 32 || strings.Contains(same, sharedPassword) || same == model.NewDigestKey([]byte(strings.Repeat("l", 32))).Credentials("root", model.NewSensitive(sharedPassword), "") {
		t.Errorf("the fingerprint is %q", same)
	}
}

// TestRefusedForNow reads a BMC that refuses the credentials that it accepted before, whenever it is due, over restarts.
func TestRefusedForNow(t *testing.T) {
	same := fingerprints.Credentials("root", model.NewSensitive(sharedPassword), "")
	in := sharing(func(b1, _ *model.BMCRecord) { b1.Accepted = same })
	refused := proposal.Answer{Failed: &proposal.Failure{Reason: model.ReasonAuthenticationFailed, Text: "it refuses; correct the BMCSecret"}}
	read := func() time.Time {
		for ; ; in.Now = in.Now.Add(time.Second) {
			in.Read = nil // as after a restart
			if m := Load(in).Propose().Readings["b1"]; m != nil {
				in.Observed.BMCs["b1"] = m.Settle(refused, in.Now).BMCs[0]
				return in.Now
			}
		}
	}
	first := read()
	for n := 1; n <= model.RefusedTries+2; n++ {
		why, last := Load(in).Named("b1").Why, in.Now
		pause, actor, says := model.RefusedPause, proposal.ActorNone, "asked again every 100 s until 2026-11-21T12:16:41Z, then every 15 min"
		if n > model.RefusedTries {
			pause, actor, says = model.RefusedPauseMax, proposal.RackOperator, "unlock its account"
		}
		if why.Reason != model.ReasonAuthenticationFailed || why.Actor != actor || !strings.Contains(why.Message, says) || strings.Contains(why.Message, "BMCSecret") || !why.Since.Equal(first) {
			t.Errorf("after %d refusals: %+v, want actor %q and %q", n, why, actor, says)
		}
		if at := read(); at.Sub(last) != pause {
			t.Errorf("asked %v after refusal %d, want %v", at.Sub(last), n, pause)
		}
	}
	in.Desired.BMCSecrets["all"].Values["password"] = model.NewSensitive("another")
	if last := in.Now; read() != last {
		t.Error("other credentials of Git have to wait")
	}
	if rec := in.Observed.BMCs["b1"]; rec.Refused.Count != 0 || rec.Accepted != same || Load(in).Named("b1").Why.Actor != proposal.RackOperator {
		t.Errorf("refused credentials of Git count as those that it accepted: %+v", rec)
	}
}

func TestReadingNotesAcceptedCredentials(t *testing.T) {
	now := settleNow
	denied := proposal.Answer{Failed: &proposal.Failure{Reason: model.ReasonAuthenticationFailed, Text: "no"}}
	down := proposal.Answer{Failed: &proposal.Failure{Reason: model.ReasonConnectionFailed, Text: "refused"}}
	refusals := func(n int, ago time.Duration) model.Acceptance {
		return model.Acceptance{Here: true, Refused: model.Refusals{Count: n, At: now.Add(-ago)}}
	}
	type counted struct {
		Accepted string
		Refusals int
		At, Next time.Duration // from now
	}
	for name, tc := range map[string]struct {
		was    model.Acceptance
		retry  bool
		answer proposal.Answer
		want   counted
	}{
		"an answer":                              {answer: proposal.Answer{BMC: &model.BMCFacts{Name: "b1"}}, want: counted{Accepted: "new"}},
		"an answer after refusals":               {was: refusals(3, 0), answer: proposal.Answer{BMC: &model.BMCFacts{Name: "b1"}}, want: counted{Accepted: "new"}},
		"a refusal":                              {was: refusals(0, 0), answer: denied, want: counted{"old", 1, 0, 100 * time.Second}},
		"the eleventh":                           {was: refusals(10, time.Hour), answer: denied, want: counted{"old", 11, 0, 15 * time.Minute}},
		"no request, as it was refused just now": {was: refusals(2, time.Second), answer: denied, want: counted{"old", 2, -time.Second, 99 * time.Second}},
		"a retry that a person asks for":         {was: refusals(2, time.Second), retry: true, answer: denied, want: counted{"old", 3, 0, 100 * time.Second}},
		"one after the clock was set back":       {was: refusals(2, -time.Hour), answer: denied, want: counted{"old", 3, 0, 100 * time.Second}},
		"no answer between refusals":             {was: refusals(2, time.Minute), answer: down, want: counted{"old", 2, -time.Minute, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			old := bmcOf(func(rec *model.BMCRecord) {
				rec.Accepted, rec.Refused = "old", tc.was.Refused
			})
			m := &Reading{Target: model.BMCTarget{Accepted: tc.was, Retry: tc.retry}, Then: old, old: old, policy: &p, credentials: "new"}
			rec := m.Settle(tc.answer, now).BMCs[0]
			got := counted{Accepted: rec.Accepted, Refusals: rec.Refused.Count}
			if rec.Refused.Count > 0 {
				got.At, got.Next = rec.Refused.At.Sub(now), rec.NotBefore.Sub(now).Round(time.Second)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestStartingBMCIsReadOften(t *testing.T) {
	for name, tc := range map[string]struct {
		starting bool
		since    time.Duration // the age of its state
		want     time.Duration // the longest pause
	}{
		"in the first hour":      {true, 58 * time.Minute, time.Minute},
		"later":                  {true, time.Hour, time.Hour},
		"one that lacks nothing": {false, time.Minute, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			in := sharing(func(b1, _ *model.BMCRecord) { b1.Since = settleNow.Add(-tc.since) })
			in.Observed.BMCFacts["b1"].Starting = tc.starting
			often := tc.want == time.Minute
			b := Load(in).Named("b1")
			if says := len(b.Problems) == 1 && strings.Contains(b.Problems[0], "every 60 s until 2026-11-21T12:02:01Z"); says != often {
				t.Errorf("it says %q", b.Problems)
			}
			in.Now = in.Now.Add(time.Minute)
			if _, read := Load(in).Propose().Readings["b1"]; read != often {
				t.Errorf("after a minute it is read: %t", read)
			}
			if in.Now = in.Now.Add(time.Hour); Load(in).Propose().Readings["b1"] == nil {
				t.Error("it is not read after an hour")
			}
		})
	}
}

// TestPauseOfAFailingBMC: one that has started is read within two minutes, however long it failed.
func TestPauseOfAFailingBMC(t *testing.T) {
	p := policy.Default()
	for failures := range 1000 {
		for _, name := range []model.BMCName{"b1", "rack7-bmc3", "x"} {
			if d := policy.BMCBackoff(name, failures, p); d > 100*time.Second {
				t.Fatalf("%v after %d failures", d, failures)
			}
		}
	}
}

// BenchmarkLoad shows what the fingerprints of credentials add to each plan.
func BenchmarkLoad(b *testing.B) {
	for name, key := range map[string]model.DigestKey{"5000 BMCs": fingerprints, "5000 BMCs without a key": {}} {
		in := sharing(func(*model.BMCRecord, *model.BMCRecord) {})
		in.DigestKey = key
		for i := range 5000 {
			bmc, secret := *in.Desired.BMCs["b1"], *in.Desired.BMCSecrets["all"]
			bmc.Name, secret.Name = fmt.Sprint("bmc-", i), fmt.Sprint("bmc-", i)
			bmc.Spec.BMCSecretRef.Name = secret.Name
			in.Desired.Add(&bmc)
			in.Desired.Add(&secret)
			rec := *in.Observed.BMCs["b1"]
			rec.Name = model.BMCName(bmc.Name)
			rec.Accepted = key.Credentials("root", model.NewSensitive(sharedPassword), "")
			in.Observed.BMCs[rec.Name] = &rec
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Load(in)
			}
		})
	}
}

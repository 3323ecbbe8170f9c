package laws_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

type (
	lawset = laws.Laws
	server = proposal.Server
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// claimID is the server's claim, which is not in Git.
var claimID = model.ClaimName("default/web").Identity()

// world is a bound server that no law holds anything of, except that its claim is not in Git.
func world() (*laws.Laws, *proposal.Server) {
	options := policy.Default()
	m := &proposal.Moment{Now: now, Started: now, Policy: &options, Desired: model.NewDesired(), Observed: model.NewObserved()}
	m.Desired.Removed = make(map[model.Identity][]model.Removal)
	rec := &model.ServerRecord{
		Life:  model.RecordLife{State: model.StateReserved, Since: now.Add(-time.Hour)},
		Claim: model.RecordClaim{Name: "default/web", Tenant: "alpha"},
		Disks: model.RecordDisks{Known: []model.Disk{{Name: "sda", Serial: "S1"}}},
	}
	s := &proposal.Server{Moment: m, Name: "s1", Record: rec, Stored: rec, Facts: &model.ServerFacts{}, Reading: &reading.State{}, Shown: true}
	l := &laws.Laws{Moment: m}
	l.Allow(model.Disruption{Action: proposal.StepRelease, Server: "s1"})
	return l, s
}

// proposals are one for each property that a law asks for.
func proposals(s *proposal.Server) map[string]proposal.Proposal {
	edited := s.Change(func(*model.ServerRecord) {})
	blind, ends, takes := edited.Stay(proposal.Decide), edited.Stay(proposal.Decide), edited.Stay(proposal.Decide)
	blind.Blind, ends.Takes = true, &model.Disruption{Action: proposal.StepRelease}
	takes.Takes = &model.Disruption{Action: proposal.StepMaintenance, Value: "m"}
	touches, frees := edited.Stay(proposal.Act), edited.Stay(proposal.Act)
	touches.Touches, frees.Frees = true, proof()
	return map[string]proposal.Proposal{
		"look": s.Inspect(), "record": edited.Stay(proposal.Look), "note": edited.Stay(proposal.Note),
		"keep": s.ToOn(proposal.Keep, proposal.FromDisk, nil), "decide": edited.Stay(proposal.Decide),
		"blind": blind, "ends": ends, "takes": takes, "touches": touches, "frees": frees,
		"act": edited.Stay(proposal.Act), "request": s.Stay(proposal.Act, proposal.SetPower{}), "goal": s.ToOff(0),
	}
}

func proof() *proposal.Proof {
	return &proposal.Proof{Mode: model.CleanupQuick, Reported: []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeDone}}}
}

const everything = "act blind decide ends frees goal keep look note record request takes touches"

// without is a list of proposals except some.
func without(list, some string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(list), func(p string) bool { return slices.Contains(strings.Fields(some), p) }), " ")
}

func TestLaws(t *testing.T) {
	why := func(reason string) proposal.Why { return proposal.Why{Reason: reason, Message: "m"} }
	intends := func(kind model.IntentKind) func(*lawset, *server) {
		return func(l *lawset, s *server) { s.Shown, s.Record.Intent = false, &model.Intent{Kind: kind, Value: "1"} }
	}
	held := intends(model.IntentReprovision)
	listed := func(cause model.AbsenceCause, blob string) func(*lawset, *server) {
		return func(l *lawset, s *server) {
			l.Desired.Absent = []model.Absence{{Identity: claimID, Token: "abc", Since: now, Cause: cause, Blob: blob}}
		}
	}
	removed := func(l *lawset, s *server) { l.Desired.Removed[claimID] = []model.Removal{{Tenant: "alpha"}} }
	allow := func(value string) func(*lawset, *server) {
		return func(l *lawset, s *server) {
			l.Allow(model.Disruption{Action: proposal.StepMaintenance, Server: "s1", Value: value})
		}
	}
	holds := func(until time.Time) func(*lawset, *server) {
		return func(l *lawset, s *server) {
			d := model.Disruption{Action: proposal.StepMaintenance, Server: "s1", Claim: "default/web", Value: "m"}
			l.Observed.Fleet.Holds = []model.GuardHold{
				{Token: "other", Steps: []model.Disruption{{Action: "wipe"}}}, {Token: "abc", Revision: "main@sha1:0123456789abcdef", Since: now, Steps: []model.Disruption{d}, Until: until},
			}
		}
	}
	unlooked, seen := without(everything, "look record"), without(everything, "note blind")
	follows := without(everything, "ends keep look note record")
	const touching, unshown = "blind decide goal request takes touches", model.ReasonWaitingForStatusBranch
	future, minute := now.Add(time.Hour), now.Add(time.Minute)

	for _, c := range []struct {
		law, name string
		given     func(l *lawset, s *server)
		reason    model.Reason
		holds     string // which proposals
		says      string // a part of the message, followed by who has to act, and by the times
	}{
		{"newest", "the revision is older than the one applied", func(l *lawset, _ *server) {
			l.ObserveOnly, l.HealOnly = why(model.ReasonRevisionOutdated), true
		}, model.ReasonRevisionOutdated, unlooked, "m"},

		{"lead", "this process only observes", func(l *lawset, _ *server) { l.ObserveOnly = why("NotLeading") }, "NotLeading", unlooked, "m"},
		{"lead", "it may heal", func(l *lawset, _ *server) { l.ObserveOnly, l.HealOnly = why("NotLeading"), true }, "NotLeading", without(everything, "look record keep"), ""},
		{"lead", "it may heal, but the server is being released", func(l *lawset, s *server) {
			l.ObserveOnly, l.HealOnly, s.Record.Release = why("NotLeading"), true, &model.Release{}
		}, "NotLeading", unlooked, ""},
		{"lead", "it may heal, but the server is in maintenance", func(l *lawset, s *server) { l.ObserveOnly, l.HealOnly, s.Service.By = why("NotLeading"), true, "m" }, "NotLeading", unlooked, ""},

		{"absence", "a commit removed the claim", removed, "", "", ""},
		{"absence", "a commit removed another tenant's", func(l *lawset, _ *server) { l.Desired.Removed[claimID] = []model.Removal{{Tenant: "beta"}} }, model.ReasonAbsentWithoutCommit, "ends", "put it back"},
		{"absence", "Git lacks the claim", nil, model.ReasonAbsentWithoutCommit, "ends", "no commit took it away"},
		{"absence", "it cannot be read", func(l *lawset, _ *server) { l.Desired.Quarantined[claimID] = []string{""} }, model.ReasonClaimQuarantined, "ends", "cannot be used"},
		{"absence", "it cannot be read since it was removed", func(l *lawset, s *server) {
			removed(l, s)
			l.Desired.Quarantined[claimID] = []string{"alpha"}
		}, model.ReasonClaimQuarantined, "ends", "cannot be used"},
		{"absence", "it is listed", listed("", ""), model.ReasonAbsentWithoutCommit, "ends", "Ingot-Approve: abc (to act: rack operator) since 12:00"},
		{"absence", "it is listed as changed", listed("", "b"), model.ReasonAbsentWithoutCommit, "ends", "stands otherwise"},
		{"absence", "after a rewrite", listed(model.AbsentHistoryRewritten, ""), model.ReasonAbsentWithoutCommit, "ends", "rewritten"},
		{"absence", "from another source", listed(model.AbsentSourceChanged, ""), model.ReasonAbsentWithoutCommit, "ends", "is another"},
		{"absence", "of an unknown past", listed(model.AbsentAppliedUnknown, ""), model.ReasonAbsentWithoutCommit, "ends", "no longer available"},

		{"damage", "the server must not be reached", func(_ *lawset, s *server) { s.Blocked = why("Blocked") }, "Blocked", seen, "m"},
		{"damage", "it failed a moment ago", func(_ *lawset, s *server) {
			s.Record.Life.NotBefore, s.Record.Life.LastError = minute, "no room"
		}, model.ReasonFailing, seen, "no room; it is tried again (to act: rack operator) until 12:01"},
		{"damage", "it failed, by a clock that was ahead", func(_ *lawset, s *server) { s.Record.Life.NotBefore = future }, "", "", ""},
		{"damage", "its BMC is silent", func(_ *lawset, s *server) {
			s.Reading.NotBefore, s.Reading.Err, s.Reading.Reason = minute, "timeout", model.ReasonUnsupported
		}, model.ReasonBMCUnreachable, seen, "timeout (to act: rack operator) since 00:00 until 12:01"},
		{"damage", "its BMC refuses the password", func(_ *lawset, s *server) {
			s.Reading.NotBefore, s.Reading.Reason = minute, model.ReasonAuthenticationFailed
		}, model.ReasonAuthenticationFailed, seen, " until 12:01"},

		{"identity", "it is not the machine that Git describes", func(_ *lawset, s *server) { s.Contradicted = why("Contradicted") }, "Contradicted", without(everything, "look note blind"), "m"},

		{"wiped", "a disk is not accounted for", func(_ *lawset, s *server) {
			s.Record.Disks.Known = append(s.Record.Disks.Known, model.Disk{Name: "sdb", Serial: "S2"})
		}, model.ReasonCleanupFailed, "frees", "S2"},

		{"guard", "there is no list", nil, model.ReasonGuardHeld, "takes", "see fleet.yaml"},
		{"guard", "the step is allowed", allow("m"), "", "", ""},
		{"guard", "another step is allowed", allow("other"), model.ReasonGuardHeld, "takes", "holds its maintenance back"},
		{"guard", "it is held in a list", holds(time.Time{}), model.ReasonGuardHeld, "takes", "ends with Ingot-Approve: abc, or refuse it with git revert 0123456789ab (to act: rack operator) since 12:00"},
		{"guard", "it is held until there is room", holds(future), model.ReasonGuardHeld, "takes", "ab; without either it goes at 2026-11-21T13:00:00Z"},
		{"guard", "what it does is known", func(l *lawset, _ *server) { l.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}}) }, model.ReasonGuardHeld, "takes", "back, which will power off the server"},

		{"written", "the branch shows all", nil, "", "", ""},
		{"written", "the branch does not show a reprovision", held, unshown, follows, "to show it: Reprovision 1"},
		{"written", "nor a release", intends(model.IntentRelease), unshown, follows, ""},
		{"written", "nor a binding", intends(model.IntentBind), unshown, touching, ""},
		{"written", "nor an adoption", intends(model.IntentAdopt), unshown, touching, ""},
		{"written", "nor a wipe", intends(model.IntentWipe), unshown, touching, ""},
		{"written", "nor a discovery", intends(model.IntentDiscover), unshown, touching, ""},
		{"written", "and cannot be pushed", func(l *lawset, s *server) {
			held(l, s)
			l.Unannounced = now
		}, model.ReasonWaitingForStatusBranch, follows, "/readyz (to act: rack operator) since 12:00"},
	} {
		t.Run(c.law+": "+c.name, func(t *testing.T) {
			l, s := world()
			if c.law != "absence" {
				removed(l, s)
			}
			if c.law != "guard" {
				allow("m")(l, s)
			}
			if c.given != nil {
				c.given(l, s)
			}
			var got []string
			for name, p := range proposals(s) {
				why := l.Check(s, &p)
				if why.Reason == "" {
					continue
				}
				got = append(got, name)
				text := why.Text()
				if !why.Since.Equal(s.Record.Life.Since) {
					text += why.Since.Format(" since 15:04")
				}
				if !why.Until.IsZero() {
					text += why.Until.Format(" until 15:04")
				}
				if why.Reason != c.reason || !strings.Contains(text, c.says) || why.Until.IsZero() == strings.Contains(c.says, "until 12") {
					t.Errorf("%s is held by %+v, want %s: …%s…", name, why, c.reason, c.says)
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, " "); got != c.holds {
				t.Errorf("it holds %q\nwant     %q", got, c.holds)
			}
		})
	}
}

func TestWiped(t *testing.T) {
	none, failed := &proposal.Proof{Mode: model.CleanupNone}, proof()
	failed.Reported[0].Result = model.WipeFailed
	for _, c := range []struct {
		name, mode string
		proof      *proposal.Proof
		want       model.Reason
	}{
		{"all disks are wiped", model.CleanupQuick, proof(), ""},
		{"a wipe failed", model.CleanupQuick, failed, model.ReasonCleanupFailed},
		{"nothing is reported", model.CleanupQuick, &proposal.Proof{Mode: model.CleanupQuick}, model.ReasonCleanupFailed},
		{"nothing has to be wiped", model.CleanupNone, none, ""},
		{"nothing had to be wiped when it was decided", model.CleanupQuick, none, model.ReasonCleanupFailed},
		{"the wipe was asked for when it was decided", model.CleanupNone, &proposal.Proof{Mode: model.CleanupQuick}, model.ReasonCleanupFailed},
	} {
		l, s := world()
		l.Policy.CleanupMode = c.mode
		p := s.Stay(proposal.Act)
		p.Frees = c.proof
		if why := l.Check(s, &p); why.Reason != c.want {
			t.Errorf("%s: it is held by %+v, want %q", c.name, why, c.want)
		}
	}
}

// TestOrder lifts one law after the other from a proposal that all of them hold.
func TestOrder(t *testing.T) {
	l, s := world()
	p := s.Stay(proposal.Act)
	p.Touches, p.Takes, p.Frees = true, &model.Disruption{Action: proposal.StepRelease}, &proposal.Proof{}
	l = &laws.Laws{Moment: l.Moment}
	l.ObserveOnly, l.HealOnly = proposal.Why{Reason: model.ReasonRevisionOutdated}, true
	s.Blocked, s.Contradicted, s.Shown, s.Record.Intent = proposal.Why{Reason: "damage"}, proposal.Why{Reason: "identity"}, false, &model.Intent{}
	for _, c := range []struct {
		reason model.Reason
		counts bool
		lift   func()
	}{
		{model.ReasonRevisionOutdated, false, func() { l.ObserveOnly.Reason = "lead" }},
		{"lead", false, func() { l.ObserveOnly = proposal.Why{} }},
		{model.ReasonAbsentWithoutCommit, false, func() { l.Desired.Removed[claimID] = []model.Removal{{}} }},
		{"damage", true, func() { s.Blocked = proposal.Why{} }},
		{"identity", true, func() { s.Contradicted = proposal.Why{} }},
		{model.ReasonCleanupFailed, true, func() { p.Frees = proof() }},
		{model.ReasonGuardHeld, true, func() { l.Allow(model.Disruption{Action: proposal.StepRelease, Server: "s1"}) }},
		{model.ReasonWaitingForStatusBranch, true, func() { s.Shown = true }},
		{"", true, func() {}},
	} {
		if why := l.Check(s, &p); why.Reason != c.reason {
			t.Errorf("it is held by %+v, want %q", why, c.reason)
		}
		if got := l.Counts(s, &p); got != c.counts {
			t.Errorf("when %q holds it, it counts for the guard: %t", c.reason, got)
		}
		c.lift()
	}
}

// TestPushed covers the proposals whose actions are known: a goal was turned into some by then.
func TestPushed(t *testing.T) {
	for unpushed, want := range map[bool]string{true: "request touches", false: ""} {
		l, s := world()
		l.Unpushed = unpushed
		var got []string
		for name, p := range proposals(s) {
			if why := l.Pushed(s, &p); why.Reason == model.ReasonWaitingForStatusBranch {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if got := strings.Join(got, " "); got != want {
			t.Errorf("unpushed %t: it holds %q, want %q", unpushed, got, want)
		}
	}
}

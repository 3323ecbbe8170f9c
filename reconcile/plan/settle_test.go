package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// settleNow is when the moves of these tests end; they were planned a second before.
var (
	settleNow = time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)
	plannedAt = settleNow.Add(-time.Second)
)

// recordOf is the record of server s1, which is Reserved.
func recordOf(changes ...func(*model.ServerRecord)) *model.ServerRecord {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s1", BMC: "b1", UUID: "u"}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: "default/web"}}
	for _, change := range changes {
		change(rec)
	}
	return rec
}

func askedFor(reset model.ResetKind, want model.Power) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{Reset: reset, Want: want, At: plannedAt, Tries: 1}
	}
}

// askedNow is a record's request as it stands after its answer.
func askedNow(change func(*model.PowerAsked)) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) {
		asked := *rec.Power.Asked
		change(&asked)
		rec.Power.Asked = &asked
	}
}

func operating(rec *model.ServerRecord) {
	rec.Requests.Operation = &model.Operation{Value: "power-cycle#1", Reset: model.ResetPowerCycle, AskedAt: plannedAt}
}

func outcomeOf(outcome model.OperationOutcome, message string) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) {
		op := *rec.Requests.Operation
		op.Outcome, op.Message = outcome, message
		rec.Requests.Operation = &op
	}
}

func lastError(err string) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) { rec.Life.LastError = err }
}

// powering is the record of s1 with a power-on requested.
func powering(changes ...func(*model.ServerRecord)) *model.ServerRecord {
	return recordOf(append([]func(*model.ServerRecord){askedFor(model.ResetOn, model.PowerOn)}, changes...)...)
}

func attempted(rec *model.ServerRecord) { rec.Boot.Attempts++ }

func failing(times int, err string) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) {
		rec.Life.Failures, rec.Life.LastError = times, err
		rec.Life.NotBefore = settleNow.Add(policy.Backoff(rec.Name, times, policy.Default()))
	}
}

func unsureOf(rec *model.ServerRecord) { askedNow(func(a *model.PowerAsked) { a.Unsure = true })(rec) }

func failed(kind proposal.FailureKind, reason model.Reason, text string) proposal.Answer {
	return proposal.Answer{At: settleNow, Failed: &proposal.Failure{Kind: kind, Reason: reason, Text: text}}
}

func TestWhatBecomesOfAMove(t *testing.T) {
	type (
		acts   = []proposal.Action
		says   = []proposal.Answer
		record = model.ServerRecord
	)
	undone := func(reason model.Reason, text string) says { return says{failed(proposal.FailureUndone, reason, text)} }
	unsure := func(reason model.Reason, text string) says { return says{failed(proposal.FailureUnsure, reason, text)} }
	var (
		p        = policy.Default()
		accepted = proposal.Answer{At: settleNow, Reset: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn}}
		on       = proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff}
		forceOff = acts{proposal.SetPower{Reset: model.ResetForceOff}}
		cycle    = acts{proposal.SetPower{Reset: model.ResetPowerCycle}}
		look     = acts{proposal.Inspect{}}
		armed    = proposal.Arm{Boot: proposal.Boot{Ticket: model.Ticket{ID: "s1.1", Digest: "d"}, Image: "os:1", Architecture: "amd64"}}
		ticket   = model.Ticket{ID: "s1.1", Digest: "d", Image: model.PinnedImage{Ref: "os:1", Kernel: &model.Layer{Digest: "k"}}}
		facts    = &model.ServerFacts{Name: "s1", Power: model.PowerOff, Inventory: &model.Inventory{UUID: "u", MemoryBytes: 1 << 30}}
		off      = reading.State{At: plannedAt, Offs: 3, OffSince: plannedAt}
		asked    = reading.State{At: plannedAt}
		lookedAt = reading.State{At: settleNow, Offs: 4, OffSince: plannedAt, WasOff: true}
		foundOn  = reading.State{At: settleNow, Ons: 1}
		onFacts  = []*model.ServerFacts{{Name: "s1", Power: model.PowerOn, Inventory: facts.Inventory}}
		retry    = settleNow.Add(policy.Backoff("s1", 1, p))
		saw      = func(power model.Power) says { return says{{At: settleNow, Facts: &model.ServerFacts{Power: power}}} }
		missed   = func(err string, reason model.Reason) reading.State {
			return reading.State{At: plannedAt, Failed: reading.Failed{Failures: 1, Err: err, Reason: reason, Since: settleNow, NotBefore: retry}}
		}
		problem = func(reason model.Reason, message string) *model.BootProblem {
			return &model.BootProblem{
				Digest: "d", Architecture: "amd64", Image: "os:1", Reason: reason, Message: message,
				Since: settleNow, ProblemScratch: model.ProblemScratch{Failures: 1, NotBefore: retry},
			}
		}
		ofBoot = func(reason model.Reason, message string) func(*record) {
			return func(rec *record) { rec.Boot.Problem = problem(reason, message) }
		}
		settled = func(outcome proposal.MoveOutcome, err string, r reading.State, recs ...*model.ServerRecord) proposal.Settled {
			return proposal.Settled{Outcome: outcome, Err: err, News: true, Reading: r, Changes: proposal.Changes{Servers: recs}}
		}
	)
	askedToShutDown := askedFor(model.ResetGracefulOff, model.PowerOff)
	askedForceOff, askedCycle := askedFor(model.ResetForceOff, model.PowerOff), askedFor(model.ResetPowerCycle, model.PowerOn)
	poweredOn := func(rec *record) {
		askedFor(model.ResetOn, model.PowerOn)(rec)
		rec.Power.Asked.Before = model.PowerOff
	}
	noShutdown := func(at time.Time) func(*record) { return func(rec *record) { rec.Power.NoShutdown = at } }
	powered := func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-time.Hour), Reached: true}
	}
	for name, tc := range map[string]struct {
		old     *model.ServerRecord // nil = recordOf()
		isNew   bool                // it has no record
		then    *model.ServerRecord // nil = as it was
		routine bool
		do      acts
		answers says
		want    proposal.Settled
	}{
		"a look that finds nothing new saves nothing and is no news": {
			routine: true, do: look, answers: saw(model.PowerOff), want: proposal.Settled{Outcome: proposal.MoveDone, Reading: lookedAt},
		},
		"a look that finds another power saves that": {routine: true, do: look, answers: saw(model.PowerOn), want: proposal.Settled{
			Outcome: proposal.MoveDone, News: true, Reading: foundOn, Changes: proposal.Changes{ServerFacts: onFacts},
		}},
		"an inventory keeps the parts that a server that is off does not show": {
			do: acts{proposal.Inspect{Inventory: true}},
			answers: says{{At: settleNow, Facts: &model.ServerFacts{
				Power: model.PowerOff, Inventory: &model.Inventory{UUID: "u", Model: "X", Manufacturer: "M"},
			}}},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: reading.State{At: settleNow, Parts: reading.Parts{InventoryAt: settleNow}, Offs: 4, OffSince: plannedAt, WasOff: true},
				Changes: proposal.Changes{ServerFacts: []*model.ServerFacts{{
					Name: "s1", Power: model.PowerOff, Inventory: &model.Inventory{UUID: "u", Model: "X", Manufacturer: "M", MemoryBytes: 1 << 30},
				}}},
			},
		},
		"what was read Off before a lease was renewed counts no more": {
			routine: true, do: look, answers: says{{At: settleNow, Facts: &model.ServerFacts{Power: model.PowerOff}, Leased: settleNow}},
			want: proposal.Settled{Outcome: proposal.MoveDone, Reading: reading.State{At: settleNow, WasOff: true}},
		},
		"a BMC that gives no answer is noted in the reading alone": {
			routine: true, do: look, answers: unsure(model.ReasonConnectionFailed, "refused"),
			want: settled(proposal.MoveUnanswered, "read power state: refused", missed("read power state: refused", model.ReasonConnectionFailed)),
		},
		"a ticket is recorded with its image and what it serves, and the problem of the boot is over": {
			old: recordOf(ofBoot("NotFound", "no such tag"), func(rec *record) { rec.Life.Failures = 2 }), do: acts{armed},
			answers: says{{At: settleNow, Ticket: ticket, Payload: model.NewSensitive("ign")}},
			want: proposal.Settled{Outcome: proposal.MoveDone, News: true, Reading: off, Changes: proposal.Changes{
				Servers:  []*record{recordOf(func(rec *record) { rec.Boot.Ticket, rec.Boot.Serial = &ticket, 1 })},
				Payloads: map[string]model.Sensitive{"s1.1": model.NewSensitive("ign")},
			}},
		},
		"an image that the server cannot start is a problem of the boot, and no ticket is on record": {
			do: acts{proposal.Arm{Boot: proposal.Boot{
				Ticket: armed.Boot.Ticket, Image: "os:1", Architecture: "amd64", Needs: proposal.Needs{UKI: "it needs one"},
			}}},
			answers: says{{At: settleNow, Ticket: ticket}},
			want: settled(proposal.MoveFailed, "arm boot ticket for os:1: image os:1 has no UKI layer, and it needs one", off,
				recordOf(ofBoot(model.ReasonBootMethodMismatch, "image os:1 has no UKI layer, and it needs one"))),
		},
		"a boot that cannot be armed for a reason that nobody knows says what was tried": {
			do: acts{armed}, answers: unsure("", "disk full"),
			want: settled(proposal.MoveFailed, "arm boot ticket for os:1: disk full", off,
				recordOf(ofBoot(model.ReasonArmFailed, "arm boot ticket for os:1: disk full"))),
		},
		"a power request that was accepted keeps what the move decided, and failures are over": {
			old: recordOf(failing(2, "x")), then: recordOf(failing(2, "x"), askedFor(model.ResetOn, model.PowerOn)),
			do: acts{proposal.BootOnce{}, on}, answers: says{{At: settleNow, Variant: proposal.VariantContinuous}, accepted},
			want: settled(proposal.MoveDone, "", asked, recordOf(poweredOn, func(rec *record) { rec.Boot.OverrideVariant = proposal.VariantContinuous })),
		},
		"a BMC that sets no boot from disk is not asked again, and the server is powered on": {
			then: powering(), do: acts{proposal.DiskOnce{Firmware: "1.0"}, on},
			answers: append(undone(model.ReasonBootOverrideNotKept, "not kept"), accepted),
			want: settled(proposal.MoveDone, "", asked, recordOf(poweredOn, func(rec *record) {
				rec.Boot.NoDiskBoot = &model.NoDiskBoot{Reason: model.ReasonBootOverrideNotKept, Message: "not kept", Since: settleNow, Firmware: "1.0"}
			})),
		},
		"a BMC that only had no time for a boot from disk is asked again the next time": {
			then: powering(), do: acts{proposal.DiskOnce{}, on}, answers: append(unsure(model.ReasonConnectionFailed, "busy"), accepted),
			want: settled(proposal.MoveDone, "", asked, recordOf(poweredOn)),
		},
		"of a power request whose answer was lost nobody knows whether it was carried out": {
			then: powering(attempted), do: acts{on}, answers: unsure("", "EOF"),
			want: settled(proposal.MoveFailed, "ask for power On: EOF", asked, powering(unsureOf, lastError("ask for power On: EOF"))),
		},
		"a restart whose answer was lost is Unknown, and not asked for again": {
			old: recordOf(operating), then: recordOf(operating, askedCycle), do: cycle, answers: unsure("", "EOF"),
			want: settled(proposal.MoveFailed, "ask for power PowerCycle: EOF", asked, recordOf(operating, askedCycle, unsureOf,
				outcomeOf(model.OutcomeUnknown, "ask for power PowerCycle: EOF"), lastError("ask for power PowerCycle: EOF"))),
		},
		"a restart that switched the server on says so": {
			old: recordOf(operating), then: recordOf(operating, askedCycle), do: cycle, answers: says{accepted},
			want: settled(proposal.MoveDone, "", asked,
				recordOf(operating, poweredOn, outcomeOf(model.OutcomeDone, "it was off, so it was switched on instead"))),
		},
		"a power request that was refused leaves the record as it was, but for the failure": {
			then: powering(attempted), do: acts{on}, answers: undone(model.ReasonUnknownError, "no"),
			want: settled(proposal.MoveFailed, "ask for power On: no", off, recordOf(failing(1, "ask for power On: no"))),
		},
		"a power-on whose task failed is answered, with the text of the task": {
			then: powering(), do: acts{on},
			answers: says{{At: settleNow, Reset: model.ResetResult{Before: model.PowerOff}, Failed: &proposal.Failure{
				Reason: model.ReasonPowerOnRefused, Text: "its task failed",
			}}},
			want: settled(proposal.MoveDone, "", asked, recordOf(poweredOn, func(rec *record) { rec.Power.Asked.Problem = "its task failed" })),
		},
		"a machine that knows no graceful shutdown is marked for it, and no failure is counted": {
			old: recordOf(powered), then: recordOf(powered, askedToShutDown), do: acts{proposal.SetPower{Reset: model.ResetGracefulOff}},
			answers: undone(model.ReasonUnsupported, "none"),
			want:    settled(proposal.MoveNoShutdown, "ask for power GracefulShutdown: none", off, recordOf(powered, noShutdown(settleNow))),
		},
		"one that may not be forced off counts a failure": {
			then: recordOf(askedToShutDown), do: acts{proposal.SetPower{Reset: model.ResetGracefulOff, Gently: true}},
			answers: undone(model.ReasonUnsupported, "none"),
			want:    settled(proposal.MoveFailed, "ask for power GracefulShutdown: none", off, recordOf(failing(1, "ask for power GracefulShutdown: none"))),
		},
		"the forced power-off that follows takes the mark away": {
			old: recordOf(noShutdown(plannedAt)), then: recordOf(noShutdown(plannedAt), askedForceOff),
			do: forceOff, answers: says{{At: settleNow}}, want: settled(proposal.MoveDone, "", asked, recordOf(askedForceOff)),
		},
		"what another machine was not asked for is no failure of the server's": {
			then: powering(), do: acts{on}, answers: undone(model.ReasonIdentityMismatch, "another"),
			want: settled(proposal.MoveUnanswered, "ask for power On: another", missed("ask for power On: another", model.ReasonIdentityMismatch), recordOf()),
		},
		"a machine whose power has changed meanwhile is asked for nothing, and thought over again": {
			then: powering(), do: acts{on},
			answers: says{{
				At: settleNow, Reset: model.ResetResult{Before: model.PowerOn}, Failed: &proposal.Failure{Kind: proposal.FailureUndone, Text: "it is On"},
			}},
			want: proposal.Settled{
				Outcome: proposal.MoveOvertaken, Err: "ask for power On: it is On", News: true, Reading: foundOn,
				Changes: proposal.Changes{Servers: []*record{recordOf()}, ServerFacts: onFacts},
			},
		},
		"a power request that could not be recorded before was not made": {
			then: powering(), do: acts{on}, answers: says{failed(proposal.FailureUnrecorded, "", "disk full")},
			want: settled(proposal.MoveFailed, "ask for power On: disk full",
				reading.State{At: plannedAt, Failed: reading.Failed{Unsaved: 1, Failures: 1, Err: "ask for power On: disk full", Since: settleNow, NotBefore: retry}}),
		},
		"a stop after a boot from disk was refused leaves nothing": {
			then: powering(), do: acts{proposal.DiskOnce{}, on}, answers: undone(model.ReasonUnsupported, "none"),
			want: proposal.Settled{Outcome: proposal.MoveStopped, Err: "ask for power On: stopped before it was begun", News: true, Reading: off},
		},
		"a stop during a power request leaves what was noted before it": {
			then: powering(), do: acts{on}, answers: says{failed(proposal.FailureStopped, "", "context canceled")},
			want: settled(proposal.MoveStopped, "ask for power On: context canceled", asked),
		},
		"what was read before a stop is kept": {do: append(look, proposal.ClearBoot{}), answers: saw(model.PowerOn), want: proposal.Settled{
			Outcome: proposal.MoveStopped, Err: "clear boot override: stopped before it was begun", News: true,
			Reading: foundOn, Changes: proposal.Changes{ServerFacts: onFacts},
		}},
		"a new server is on record even if its first move fails": {
			isNew: true, then: recordOf(askedForceOff), do: forceOff, answers: undone("", "no"),
			want: settled(proposal.MoveFailed, "ask for power ForceOff: no", off, recordOf(askedForceOff, failing(1, "ask for power ForceOff: no"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := tc.old
			if old == nil && !tc.isNew {
				old = recordOf()
			}
			m := moveOf(old, tc.then, tc.do)
			m.Routine, m.was.facts, m.was.reading = tc.routine, facts, off
			got := m.Settle(tc.answers, settleNow)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(model.Sensitive{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// moveOf is a move of server s1.
func moveOf(old, then *model.ServerRecord, do []proposal.Action) *Move {
	if then == nil {
		then = old
	}
	p := policy.Default()
	return &Move{Do: do, Then: then, was: known{old: old, policy: &p}}
}

// The record that is saved before a power request is the old one, with the request and whatever
// counts as done once it was made.
func TestWhatIsRecordedBeforeAPowerRequest(t *testing.T) {
	old := recordOf(askedFor(model.ResetForceOff, model.PowerOff), askedNow(func(a *model.PowerAsked) { a.Reached = true }))
	then := powering(operating)
	then.Life.State, then.Boot.Attempts, then.Requests.HandledReprovision = model.StateDiscovery, 1, "1"
	want := powering(unsureOf, operating)
	want.Requests.HandledReprovision, want.Boot.OverrideVariant = "1", "default"
	m := moveOf(old, then, []proposal.Action{proposal.BootOnce{}, proposal.SetPower{Reset: model.ResetOn}})
	got := m.BeforeAsking([]proposal.Answer{{Variant: "default"}})
	if diff := cmp.Diff(proposal.Changes{Servers: []*model.ServerRecord{want}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatEndsAMove(t *testing.T) {
	power := proposal.SetPower{Reset: model.ResetOn}
	refused := failed(proposal.FailureUndone, model.ReasonUnsupported, "none")
	for name, tc := range map[string]struct {
		do      []proposal.Action
		answers []proposal.Answer
		want    proposal.Action // nil = it is over
	}{
		"it begins with its first action":         {[]proposal.Action{proposal.BootOnce{}, power}, nil, proposal.BootOnce{}},
		"what was done leads to the next":         {[]proposal.Action{proposal.BootOnce{}, power}, []proposal.Answer{{}}, power},
		"what failed ends it":                     {[]proposal.Action{proposal.BootOnce{}, power}, []proposal.Answer{refused}, nil},
		"a boot from disk that failed does not":   {[]proposal.Action{proposal.DiskOnce{}, power}, []proposal.Answer{refused}, power},
		"the last that was done ends it":          {[]proposal.Action{power}, []proposal.Answer{{}}, nil},
		"an image that cannot be started ends it": {[]proposal.Action{proposal.Arm{Boot: proposal.Boot{Needs: proposal.Needs{UKI: "no"}}}, power}, []proposal.Answer{{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveOf(nil, powering(), tc.do)
			if got, ok := m.Next(tc.answers); got != tc.want && (ok || tc.want != nil) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestALookFollowsAnAnsweredPowerRequest(t *testing.T) {
	p := policy.Default()
	off := &model.ServerFacts{Name: "s1", Power: model.PowerOff}
	on := &Move{
		Do: []proposal.Action{proposal.DiskOnce{}, proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff}}, Then: powering(),
		was: known{old: recordOf(), facts: off, reading: reading.State{At: plannedAt, Offs: 3}, policy: &p},
	}
	answered := []proposal.Answer{{At: settleNow}, {At: settleNow, Reset: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn}}}
	lost := []proposal.Answer{{At: settleNow}, failed(proposal.FailureUnsure, "", "EOF")}
	s := on.Settle(lost, settleNow)
	if look, _, ok := on.Look(&s); ok {
		t.Errorf("after a lost answer: %+v", look)
	}
	s = on.Settle(answered, settleNow)
	look, after, ok := on.Look(&s)
	if !ok || after != p.Settle || s.PoweredOn {
		t.Fatalf("look %v after %s, powered on %t", ok, after, s.PoweredOn)
	}
	later := settleNow.Add(after)
	saw := func(power model.Power) proposal.Settled {
		return look.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: power}}}, later)
	}
	if s := saw(model.PowerOff); s.PoweredOn || len(s.Servers) != 0 || s.Reading.Offs != 0 {
		t.Errorf("while it is Off still: %+v", s)
	}
	if s := saw(model.PowerOn); !s.PoweredOn || len(s.Servers) != 1 || !s.Servers[0].Power.Asked.Reached || s.ServerFacts[0].Power != model.PowerOn {
		t.Errorf("once it is On: %+v", s)
	}
	for name, asked := range map[string]model.PowerAsked{
		"long before this process began": {Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-time.Hour), Reached: true},
		"longer ago than it may take":    {Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-p.PowerOnLimit)},
	} {
		first := *look
		first.Then, first.was.reading = recordOf(func(rec *model.ServerRecord) { rec.Power.Asked = &asked }), reading.State{}
		first.was.old = first.Then
		if s := first.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: model.PowerOn}}}, later); s.PoweredOn {
			t.Errorf("asked to power on %s, it leaves a place that it does not have", name)
		}
	}
	again := *look
	again.was.reading = saw(model.PowerOn).Reading
	if s := again.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: model.PowerOn}}}, later); s.PoweredOn {
		t.Error("it is said to have powered on a second time")
	}
	if _, _, ok := look.Look(&s); ok {
		t.Error("a look is followed by another")
	}
}

// A reading of parts that fails as a whole does not report the BMC as unreachable each time.
func TestAReadingOfPartsThatFailsIsPutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		do     proposal.Inspect
		before reading.State
		want   reading.State
	}{
		"the first":               {do: proposal.Inspect{Inventory: true}, want: reading.State{Parts: reading.Parts{Unread: 1, PartsAfter: settleNow.Add(reading.PartsRetry)}}},
		"one more":                {do: proposal.Inspect{Inventory: true}, before: reading.State{Parts: reading.Parts{Unread: 2}}, want: reading.State{Parts: reading.Parts{Unread: 3, PartsAfter: settleNow.Add(4 * reading.PartsRetry)}}},
		"one of the power is not": {before: reading.State{Parts: reading.Parts{Unread: 2}}, want: reading.State{Parts: reading.Parts{Unread: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveOf(recordOf(), nil, []proposal.Action{tt.do})
			m.Routine, m.was.reading = true, tt.before
			failed := m.Settle([]proposal.Answer{{At: settleNow, Failed: &proposal.Failure{Text: "busy"}}}, settleNow).Reading
			after := failed.Saw(model.PowerOn, nil, new(policy.Default()), settleNow)
			for _, got := range []reading.State{failed, after} {
				if diff := cmp.Diff(tt.want, reading.State{Parts: reading.Parts{Unread: got.Unread, PartsAfter: got.PartsAfter}}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

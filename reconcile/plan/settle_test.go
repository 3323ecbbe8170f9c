package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
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

// powering is the record of s1 once it is to be powered on.
func powering(changes ...func(*model.ServerRecord)) *model.ServerRecord {
	return recordOf(append([]func(*model.ServerRecord){askedFor(model.ResetOn, model.PowerOn)}, changes...)...)
}

func attempted(rec *model.ServerRecord) { rec.Boot.Attempts++ }

func failing(times int, err string) func(*model.ServerRecord) {
	return func(rec *model.ServerRecord) {
		rec.Life.Failures, rec.Life.LastError = times, err
		rec.Life.NotBefore = settleNow.Add(proposal.Backoff(rec.Name, times, proposal.DefaultPolicy()))
	}
}

func unsureOf(rec *model.ServerRecord) { askedNow(func(a *model.PowerAsked) { a.Unsure = true })(rec) }

func failed(kind proposal.FailureKind, reason model.Reason, text string) proposal.Answer {
	return proposal.Answer{At: settleNow, Failed: &proposal.Failure{Kind: kind, Reason: reason, Text: text}}
}

func TestWhatBecomesOfAMove(t *testing.T) {
	var (
		p        = proposal.DefaultPolicy()
		done     = proposal.Answer{At: settleNow}
		accepted = proposal.Answer{At: settleNow, Reset: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn}}
		lost     = failed(proposal.FailureUnsure, "", "EOF")
		stopped  = failed(proposal.FailureStopped, "", "context canceled")
		on       = []proposal.Action{proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff}}
		cycle    = []proposal.Action{proposal.SetPower{Reset: model.ResetPowerCycle}}
		armed    = proposal.Arm{Boot: proposal.Boot{Ticket: model.Ticket{ID: "s1.1", Digest: "d"}, Image: "os:1", Architecture: "amd64"}}
		image    = model.PinnedImage{Ref: "os:1", Kernel: &model.Layer{Digest: "k"}}
		facts    = &model.ServerFacts{Name: "s1", Power: model.PowerOff, Inventory: &model.Inventory{UUID: "u", MemoryBytes: 1 << 30}}
		off      = proposal.Reading{At: plannedAt, Offs: 3, OffSince: plannedAt}
		asked    = proposal.Reading{At: plannedAt}
		lookedAt = proposal.Reading{At: settleNow, Offs: 4, OffSince: plannedAt, WasOff: true}
		saw      = func(power model.Power) proposal.Answer {
			return proposal.Answer{At: settleNow, Facts: &model.ServerFacts{Power: power}}
		}
		missed = func(err string, reason model.Reason) proposal.Reading {
			return proposal.Reading{
				At: plannedAt, Failures: 1, Err: err, Reason: reason,
				Since: settleNow, NotBefore: settleNow.Add(proposal.Backoff("s1", 1, p)),
			}
		}
		problem = func(reason model.Reason, message string) *model.BootProblem {
			return &model.BootProblem{
				Digest: "d", Architecture: "amd64", Image: "os:1", Reason: reason, Message: message,
				Since: settleNow, Failures: 1, NotBefore: settleNow.Add(proposal.Backoff("s1", 1, p)),
			}
		}
		saved = func(rec *model.ServerRecord) proposal.Changes {
			return proposal.Changes{Servers: []*model.ServerRecord{rec}}
		}
	)
	poweredOn := func(rec *model.ServerRecord) {
		askedFor(model.ResetOn, model.PowerOn)(rec)
		rec.Power.Asked.Before = model.PowerOff
	}
	powered := func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-time.Hour), Reached: true}
	}
	tests := map[string]struct {
		old     *model.ServerRecord // nil for a new server
		then    *model.ServerRecord // nil = as it was
		routine bool
		do      []proposal.Action
		answers []proposal.Answer
		want    proposal.Settled
	}{
		"a look that finds nothing new saves nothing and is no news": {
			old: recordOf(), routine: true, do: []proposal.Action{proposal.Inspect{}}, answers: []proposal.Answer{saw(model.PowerOff)},
			want: proposal.Settled{Outcome: proposal.MoveDone, Reading: lookedAt},
		},
		"a look that finds another power saves that": {
			old: recordOf(), routine: true, do: []proposal.Action{proposal.Inspect{}}, answers: []proposal.Answer{saw(model.PowerOn)},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: proposal.Reading{At: settleNow, Ons: 1},
				Changes: proposal.Changes{ServerFacts: []*model.ServerFacts{{Name: "s1", Power: model.PowerOn, Inventory: facts.Inventory}}},
			},
		},
		"a look that finds the power that was asked for records that it was reached": {
			old: recordOf(askedFor(model.ResetForceOff, model.PowerOff)), do: []proposal.Action{proposal.Inspect{}}, answers: []proposal.Answer{saw(model.PowerOff)},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: proposal.Reading{At: settleNow, Offs: 4, OffSince: plannedAt, WasOff: true, Reached: true},
				Changes: saved(recordOf(askedFor(model.ResetForceOff, model.PowerOff),
					askedNow(func(a *model.PowerAsked) { a.Reached = true }))),
			},
		},
		"an inventory keeps the parts that a server that is off does not show": {
			old: recordOf(), do: []proposal.Action{proposal.Inspect{Inventory: true}},
			answers: []proposal.Answer{{At: settleNow, Facts: &model.ServerFacts{
				Power: model.PowerOff, Inventory: &model.Inventory{UUID: "u", Model: "X", Manufacturer: "M"},
			}}},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: proposal.Reading{At: settleNow, InventoryAt: settleNow, Offs: 4, OffSince: plannedAt, WasOff: true},
				Changes: proposal.Changes{ServerFacts: []*model.ServerFacts{{
					Name: "s1", Power: model.PowerOff,
					Inventory: &model.Inventory{UUID: "u", Model: "X", Manufacturer: "M", MemoryBytes: 1 << 30},
				}}},
			},
		},
		"what was read Off before a lease was renewed counts no more": {
			old: recordOf(), routine: true, do: []proposal.Action{proposal.Inspect{}},
			answers: []proposal.Answer{{At: settleNow, Facts: &model.ServerFacts{Power: model.PowerOff}, Leased: settleNow}},
			want:    proposal.Settled{Outcome: proposal.MoveDone, Reading: proposal.Reading{At: settleNow, WasOff: true}},
		},
		"a BMC that gives no answer is noted in the reading alone": {
			old: recordOf(), routine: true, do: []proposal.Action{proposal.Inspect{}},
			answers: []proposal.Answer{failed(proposal.FailureUnsure, model.ReasonConnectionFailed, "refused")},
			want: proposal.Settled{
				Outcome: proposal.MoveUnanswered, Err: "read power state: refused", News: true,
				Reading: missed("read power state: refused", model.ReasonConnectionFailed),
			},
		},
		"a ticket is recorded with its image and what it serves, and the problem of the boot is over": {
			old: recordOf(func(rec *model.ServerRecord) {
				rec.Boot.Problem, rec.Life.Failures = problem("NotFound", "no such tag"), 2
			}),
			do: []proposal.Action{armed},
			answers: []proposal.Answer{{
				At: settleNow, Ticket: model.Ticket{ID: "s1.1", Digest: "d", Image: image}, Payload: model.NewSensitive("ign"),
			}},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: off,
				Changes: proposal.Changes{
					Servers: []*model.ServerRecord{recordOf(func(rec *model.ServerRecord) {
						rec.Boot.Ticket, rec.Boot.Serial = &model.Ticket{ID: "s1.1", Digest: "d", Image: image}, 1
					})},
					Payloads: map[string]model.Sensitive{"s1.1": model.NewSensitive("ign")},
				},
			},
		},
		"an image that the server cannot start is a problem of the boot, and no ticket is on record": {
			old: recordOf(),
			do: []proposal.Action{proposal.Arm{Boot: proposal.Boot{
				Ticket: armed.Boot.Ticket, Image: "os:1", Architecture: "amd64", Needs: proposal.Needs{UKI: "it needs one"},
			}}},
			answers: []proposal.Answer{{At: settleNow, Ticket: model.Ticket{ID: "s1.1", Digest: "d", Image: image}}},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "arm boot ticket for os:1: image os:1 has no UKI layer, and it needs one",
				News: true, Reading: off,
				Changes: saved(recordOf(func(rec *model.ServerRecord) {
					rec.Boot.Problem = problem(model.ReasonBootMethodMismatch, "image os:1 has no UKI layer, and it needs one")
				})),
			},
		},
		"an image that cannot be had is a problem of the boot, and no failure of the server": {
			old: recordOf(), do: []proposal.Action{armed}, answers: []proposal.Answer{failed(proposal.FailureUnsure, model.ReasonNotFound, "no such tag")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "arm boot ticket for os:1: no such tag", News: true, Reading: off,
				Changes: saved(recordOf(func(rec *model.ServerRecord) { rec.Boot.Problem = problem(model.ReasonNotFound, "no such tag") })),
			},
		},
		"a boot that cannot be armed for a reason that nobody knows says what was tried": {
			old: recordOf(), do: []proposal.Action{armed}, answers: []proposal.Answer{failed(proposal.FailureUnsure, "", "disk full")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "arm boot ticket for os:1: disk full", News: true, Reading: off,
				Changes: saved(recordOf(func(rec *model.ServerRecord) {
					rec.Boot.Problem = problem(model.ReasonArmFailed, "arm boot ticket for os:1: disk full")
				})),
			},
		},
		"a power request that was accepted keeps what the move decided, and failures are over": {
			old: recordOf(failing(2, "x")), then: recordOf(failing(2, "x"), askedFor(model.ResetOn, model.PowerOn)),
			do: append([]proposal.Action{proposal.BootOnce{}}, on...),
			answers: []proposal.Answer{
				{At: settleNow, Variant: proposal.VariantContinuous}, accepted,
			},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: asked,
				Changes: saved(recordOf(poweredOn, func(rec *model.ServerRecord) { rec.Boot.OverrideVariant = proposal.VariantContinuous })),
			},
		},
		"a BMC that sets no boot from disk is not asked again, and the server is powered on": {
			old: recordOf(), then: powering(), do: append([]proposal.Action{proposal.DiskOnce{Firmware: "1.0"}}, on...),
			answers: []proposal.Answer{
				failed(proposal.FailureUndone, model.ReasonBootOverrideNotKept, "not kept"), accepted,
			},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: asked,
				Changes: saved(recordOf(poweredOn, func(rec *model.ServerRecord) {
					rec.Boot.NoDiskBoot = &model.NoDiskBoot{
						Reason: model.ReasonBootOverrideNotKept, Message: "not kept", Since: settleNow, Firmware: "1.0",
					}
				})),
			},
		},
		"a BMC that only had no time for a boot from disk is asked again the next time": {
			old: recordOf(), then: powering(), do: append([]proposal.Action{proposal.DiskOnce{}}, on...),
			answers: []proposal.Answer{failed(proposal.FailureUnsure, model.ReasonConnectionFailed, "busy"), accepted},
			want:    proposal.Settled{Outcome: proposal.MoveDone, News: true, Reading: asked, Changes: saved(recordOf(poweredOn))},
		},
		"of a power request whose answer was lost nobody knows whether it was carried out": {
			old: recordOf(), then: powering(attempted), do: on, answers: []proposal.Answer{lost},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power On: EOF", News: true, Reading: asked,
				Changes: saved(powering(unsureOf, lastError("ask for power On: EOF"))),
			},
		},
		"a restart whose answer was lost is Unknown, and not asked for again": {
			old:  recordOf(operating),
			then: recordOf(operating, askedFor(model.ResetPowerCycle, model.PowerOn)), do: cycle, answers: []proposal.Answer{lost},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power PowerCycle: EOF", News: true, Reading: asked,
				Changes: saved(recordOf(operating, askedFor(model.ResetPowerCycle, model.PowerOn), unsureOf,
					outcomeOf(model.OutcomeUnknown, "ask for power PowerCycle: EOF"), lastError("ask for power PowerCycle: EOF"))),
			},
		},
		"a restart that switched the server on says so": {
			old: recordOf(operating), then: recordOf(operating, askedFor(model.ResetPowerCycle, model.PowerOn)), do: cycle,
			answers: []proposal.Answer{accepted},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: asked,
				Changes: saved(recordOf(operating, poweredOn, outcomeOf(model.OutcomeDone, "it was off, so it was switched on instead"))),
			},
		},
		"a power request that was refused leaves the record as it was, but for the failure": {
			old: recordOf(), then: powering(attempted), do: on,
			answers: []proposal.Answer{failed(proposal.FailureUndone, model.ReasonUnknownError, "no")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power On: no", News: true, Reading: off,
				Changes: saved(recordOf(failing(1, "ask for power On: no"))),
			},
		},
		"a machine that knows no graceful shutdown is marked for it, and no failure is counted": {
			old:     recordOf(powered),
			then:    recordOf(powered, askedFor(model.ResetGracefulOff, model.PowerOff)),
			do:      []proposal.Action{proposal.SetPower{Reset: model.ResetGracefulOff}},
			answers: []proposal.Answer{failed(proposal.FailureUndone, model.ReasonUnsupported, "none")},
			want: proposal.Settled{
				Outcome: proposal.MoveNoShutdown, Err: "ask for power GracefulShutdown: none", News: true, Reading: off,
				Changes: saved(recordOf(powered, func(rec *model.ServerRecord) { rec.Power.NoShutdown = settleNow })),
			},
		},
		"one that may not be forced off counts a failure": {
			old:     recordOf(),
			then:    recordOf(askedFor(model.ResetGracefulOff, model.PowerOff)),
			do:      []proposal.Action{proposal.SetPower{Reset: model.ResetGracefulOff, Gently: true}},
			answers: []proposal.Answer{failed(proposal.FailureUndone, model.ReasonUnsupported, "none")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power GracefulShutdown: none", News: true, Reading: off,
				Changes: saved(recordOf(failing(1, "ask for power GracefulShutdown: none"))),
			},
		},
		"of one that may have been shut down nobody knows": {
			old:     recordOf(),
			then:    recordOf(askedFor(model.ResetGracefulOff, model.PowerOff)),
			do:      []proposal.Action{proposal.SetPower{Reset: model.ResetGracefulOff}},
			answers: []proposal.Answer{failed(proposal.FailureUnsure, model.ReasonUnsupported, "none")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power GracefulShutdown: none", News: true, Reading: asked,
				Changes: saved(recordOf(askedFor(model.ResetGracefulOff, model.PowerOff), unsureOf,
					lastError("ask for power GracefulShutdown: none"))),
			},
		},
		"the forced power-off that follows takes the mark away": {
			old:  recordOf(func(rec *model.ServerRecord) { rec.Power.NoShutdown = plannedAt }),
			then: recordOf(func(rec *model.ServerRecord) { rec.Power.NoShutdown = plannedAt }, askedFor(model.ResetForceOff, model.PowerOff)),
			do:   []proposal.Action{proposal.SetPower{Reset: model.ResetForceOff}}, answers: []proposal.Answer{done},
			want: proposal.Settled{
				Outcome: proposal.MoveDone, News: true, Reading: asked, Changes: saved(recordOf(askedFor(model.ResetForceOff, model.PowerOff))),
			},
		},
		"what another machine was not asked for is no failure of the server's": {
			old: recordOf(), then: powering(), do: on,
			answers: []proposal.Answer{failed(proposal.FailureUndone, model.ReasonIdentityMismatch, "another")},
			want: proposal.Settled{
				Outcome: proposal.MoveUnanswered, Err: "ask for power On: another", News: true,
				Reading: missed("ask for power On: another", model.ReasonIdentityMismatch), Changes: saved(recordOf()),
			},
		},
		"a machine whose power has changed meanwhile is asked for nothing, and thought over again": {
			old: recordOf(), then: powering(), do: on,
			answers: []proposal.Answer{{
				At: settleNow, Reset: model.ResetResult{Before: model.PowerOn}, Failed: &proposal.Failure{Kind: proposal.FailureUndone, Reason: "", Text: "it is On"},
			}},
			want: proposal.Settled{
				Outcome: proposal.MoveOvertaken, Err: "ask for power On: it is On", News: true, Reading: proposal.Reading{At: settleNow, Ons: 1},
				Changes: proposal.Changes{
					Servers:     []*model.ServerRecord{recordOf()},
					ServerFacts: []*model.ServerFacts{{Name: "s1", Power: model.PowerOn, Inventory: facts.Inventory}},
				},
			},
		},
		"a power request that could not be recorded before was not made": {
			old: recordOf(), then: powering(), do: on,
			answers: []proposal.Answer{failed(proposal.FailureUnrecorded, "", "disk full")},
			want: proposal.Settled{Outcome: proposal.MoveFailed, Err: "ask for power On: disk full", News: true, Reading: proposal.Reading{
				At: plannedAt, Unsaved: 1, Failures: 1, Err: "ask for power On: disk full",
				Since: settleNow, NotBefore: settleNow.Add(proposal.Backoff("s1", 1, p)),
			}},
		},
		"a stop between two actions leaves nothing": {
			old: recordOf(), then: powering(), do: append([]proposal.Action{proposal.BootOnce{}}, on...), answers: []proposal.Answer{done},
			want: proposal.Settled{Outcome: proposal.MoveStopped, Err: "ask for power On: stopped before it was begun", News: true, Reading: off},
		},
		"a stop after a boot from disk was refused leaves nothing": {
			old: recordOf(), then: powering(), do: append([]proposal.Action{proposal.DiskOnce{}}, on...),
			answers: []proposal.Answer{failed(proposal.FailureUndone, model.ReasonUnsupported, "none")},
			want:    proposal.Settled{Outcome: proposal.MoveStopped, Err: "ask for power On: stopped before it was begun", News: true, Reading: off},
		},
		"a stop during a power request leaves what was noted before it": {
			old: recordOf(), then: powering(), do: on, answers: []proposal.Answer{stopped},
			want: proposal.Settled{Outcome: proposal.MoveStopped, Err: "ask for power On: context canceled", News: true, Reading: asked},
		},
		"what was read before a stop is kept": {
			old: recordOf(), do: []proposal.Action{proposal.Inspect{}, proposal.ClearBoot{}}, answers: []proposal.Answer{saw(model.PowerOn)},
			want: proposal.Settled{
				Outcome: proposal.MoveStopped, Err: "clear boot override: stopped before it was begun", News: true,
				Reading: proposal.Reading{At: settleNow, Ons: 1},
				Changes: proposal.Changes{ServerFacts: []*model.ServerFacts{{Name: "s1", Power: model.PowerOn, Inventory: facts.Inventory}}},
			},
		},
		"a new server is on record even if its first move fails": {
			then: recordOf(askedFor(model.ResetForceOff, model.PowerOff)), do: []proposal.Action{proposal.SetPower{Reset: model.ResetForceOff}},
			answers: []proposal.Answer{failed(proposal.FailureUndone, "", "no")},
			want: proposal.Settled{
				Outcome: proposal.MoveFailed, Err: "ask for power ForceOff: no", News: true, Reading: off,
				Changes: saved(recordOf(askedFor(model.ResetForceOff, model.PowerOff), failing(1, "ask for power ForceOff: no"))),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := moveOf(tc.old, tc.then, tc.do)
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
	p := proposal.DefaultPolicy()
	return &Move{Do: do, Then: then, was: known{old: old, policy: &p}}
}

// What is recorded before a power request is what was, with the request itself and what
// counts as done once it was made: nothing that the move decides besides.
func TestWhatIsRecordedBeforeAPowerRequest(t *testing.T) {
	old := recordOf(func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{Reset: model.ResetForceOff, Reached: true}
	})
	then := powering(operating, func(rec *model.ServerRecord) {
		rec.Life.State, rec.Boot.Attempts, rec.Requests.HandledReprovision = model.StateDiscovery, 1, "1"
	})
	want := powering(unsureOf, operating, func(rec *model.ServerRecord) {
		rec.Requests.HandledReprovision, rec.Boot.OverrideVariant = "1", "default"
	})
	m := moveOf(old, then, []proposal.Action{proposal.BootOnce{}, proposal.SetPower{Reset: model.ResetOn}})
	got := m.BeforeAsking([]proposal.Answer{{Variant: "default"}})
	if diff := cmp.Diff(proposal.Changes{Servers: []*model.ServerRecord{want}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatEndsAMove(t *testing.T) {
	power := proposal.SetPower{Reset: model.ResetOn}
	refused := failed(proposal.FailureUndone, model.ReasonUnsupported, "none")
	tests := map[string]struct {
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
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := moveOf(nil, powering(), tc.do)
			if got, ok := m.Next(tc.answers); got != tc.want && (ok || tc.want != nil) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

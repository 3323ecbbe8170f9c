package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ingot/gitsource/smallfile"
	"ingot/reconcile/report"
	"ingot/reconcile/report/notice"
)

// maxRefusals is how often a webhook is given a message that it refuses for what it says.
const maxRefusals = 3

// maxMemory bounds the file of what a webhook was told, in bytes.
const maxMemory = 32 << 20

// target is one webhook, with what it was told.
type target struct {
	Webhook
	opts   *Options
	pace   pace
	counts counts
	file   string // of memory
	rules  notice.Rules

	memory    *notice.Memory // nil = not read yet
	fence     uint64         // that memory was begun with
	notBefore time.Time
	failures  int       // in a row
	failing   time.Time // since the first of them
	refusals  int       // of the message with id
	id        string
	tried     endpoint // what the last attempt was made to
	outcome   outcome  // of the last attempt
	warned    time.Time
	unsaved   time.Time // when it was last said that the memory cannot be saved
}

func newTarget(w Webhook, o *Options, c counts, file string) *target {
	p := paceOf(o.Fast)
	return &target{
		Webhook: w, opts: o, pace: p, counts: c, file: file,
		rules: notice.Rules{Kinds: w.On, Ended: w.Resolved, Quiet: p.quiet, Settle: p.settle},
	}
}

// step sends the message that matters most, if there is any and the webhook may be asked.
func (t *target) step(ctx context.Context, standing *[]report.Notice) {
	fence := t.opts.Fence() // 0 once the lead has ended
	if standing == nil || fence == 0 {
		return
	}
	now := t.opts.Clock()
	t.begin(*standing, fence, now)
	t.memory.Look(*standing, now)
	due := t.memory.Due(*standing, t.rules, now)
	t.counts.waiting.Set(float64(waiting(due)))
	if len(due) == 0 {
		return
	}
	to, err := t.endpoint()
	changed := !to.same(t.tried)
	if now.Before(t.notBefore) && (!changed || t.outcome == outcomeThrottled) {
		return
	}
	t.tried = to
	if !t.opts.Leading() {
		return
	}
	if err == nil {
		err = t.post(ctx, to, due[0], now)
	}
	if ctx.Err() == nil {
		t.note(due[0], err, now)
	}
}

// waiting counts the notices of messages.
func waiting(all []notice.Message) (n int) {
	for _, m := range all {
		n += len(m.Notices)
	}
	return n
}

// begin reads the memory, and sets it to a lead that is new.
func (t *target) begin(standing []report.Notice, fence uint64, now time.Time) {
	if t.memory == nil {
		t.memory = t.remember()
	}
	if fence != t.fence {
		t.fence = fence
		t.memory.Begin(standing, fence, now.Add(-t.pace.grace))
		t.save(now)
	}
}

// note draws the conclusions from an attempt.
func (t *target) note(m notice.Message, err error, now time.Time) {
	if err == nil {
		t.counts.did(outcomeSent)
		t.opts.Log.Info("notice sent", "target", t.Name, "kind", string(m.Kind), "notices", len(m.Notices), "ended", m.Ended, "first", m.Notices[0].Name)
		t.failures, t.failing, t.notBefore, t.outcome, t.refusals = 0, time.Time{}, time.Time{}, outcomeSent, 0
		t.done(m, now)
		return
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{outcome: outcomeUnavailable, text: err.Error()}
	}
	t.counts.did(f.outcome)
	if t.failures++; t.failures == 1 {
		t.failing = now
	}
	if t.id != m.ID {
		t.id, t.refusals = m.ID, 0
	}
	if f.outcome == outcomeRejected {
		t.refusals++
	}
	wait := min(max(t.pace.backoff(t.failures), f.least(t.pace)), longestAway)
	t.notBefore = now.Add(wait)
	if t.refusals >= maxRefusals || now.Sub(t.failing) >= t.pace.giveUp {
		t.counts.did(outcomeGivenUp)
		t.counts.dropped.Add(float64(len(m.Notices)))
		t.opts.Log.Error("notice given up", "target", t.Name, "kind", string(m.Kind), "notices", len(m.Notices), "first", m.Notices[0].Name, "err", err)
		t.failing, t.refusals = now, 0
		t.done(m, now)
		return
	}
	if f.outcome != t.outcome || now.Sub(t.warned) >= time.Hour {
		t.warned = now
		t.opts.Log.Warn("webhook does not accept the notice, it is retried", "target", t.Name, "outcome", string(f.outcome), "again", wait.String(), "err", err)
	}
	t.outcome = f.outcome
}

// done notes that a message was sent, or never will be.
func (t *target) done(m notice.Message, now time.Time) {
	t.memory.Note(m, now)
	t.memory.Fence = t.fence
	t.save(now)
}

// remember reads what was told before a restart, nothing if there is no such file.
func (t *target) remember() *notice.Memory {
	m := &notice.Memory{}
	content, err := smallfile.Read(t.file, maxMemory)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err == nil:
		err = json.Unmarshal(content, m)
		fallthrough
	default:
		if err != nil {
			m = &notice.Memory{}
			t.opts.Log.Warn("what was sent to a webhook cannot be read: older problems are assumed to have been sent", "target", t.Name, "err", err)
		}
	}
	return m
}

// save keeps what was told. If it fails, something may be told again after the next restart.
func (t *target) save(now time.Time) {
	content, err := json.Marshal(t.memory)
	if err == nil {
		err = smallfile.Replace(t.file, content)
	}
	if err != nil && now.Sub(t.unsaved) >= time.Hour {
		t.unsaved = now
		t.opts.Log.Warn("what was sent to a webhook is not saved across a restart", "target", t.Name, "err", err)
	}
}

// same reports whether two attempts would be the same request.
func (e endpoint) same(other endpoint) bool {
	return e.url == other.url && slices.Equal(e.headers, other.headers)
}

// least is how long a webhook is to be left alone at least.
func (f *failure) least(p pace) time.Duration {
	switch f.outcome {
	case outcomeThrottled:
		if f.away == 0 {
			return p.throttled
		}
	case outcomeRefused:
		return max(p.refused, f.away)
	case outcomeSent, outcomeRejected, outcomeUnavailable, outcomeMisconfigured, outcomeGivenUp:
	}
	return f.away
}

// misconfigured is a failure that is of Ingot's own settings.
func misconfigured(format string, args ...any) error {
	return &failure{outcome: outcomeMisconfigured, text: fmt.Sprintf(format, args...)}
}

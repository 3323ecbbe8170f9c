package model

import (
	"strings"
	"testing"
	"time"
)

func TestTokensDifferByUse(t *testing.T) {
	k := NewTokenKey([]byte(strings.Repeat("k", 32)))
	ticket := &Ticket{ID: "s1.1", UUID: "38373000-3534-584d-5130-333030434a59"}
	// The Ignition of a ticket that was armed before a restart holds this one.
	const report = "3xrpu2tejhp4gils2engoehara"
	if got := k.Report(ticket).Reveal(); got != report {
		t.Errorf("the token to report with is %s, want %s", got, report)
	}
	seen := map[string]string{report: "to report with"}
	for title, token := range map[string]Sensitive{
		"of the first boot":      k.Config(ticket, 0),
		"of the next boot":       k.Config(ticket, 1),
		"of another ticket":      k.Config(&Ticket{ID: "s1.2", UUID: ticket.UUID}, 0),
		"of another server":      k.Config(&Ticket{ID: "s1.1", UUID: "0"}, 0),
		"to report with another": k.Report(&Ticket{ID: "s1.2", UUID: ticket.UUID}),
	} {
		if other := seen[token.Reveal()]; other != "" || len(token.Reveal()) != 26 {
			t.Errorf("the token %s is %s, like that %s", title, token.Reveal(), other)
		}
		seen[token.Reveal()] = title
		if k.MayReport(ticket, token.Reveal()) {
			t.Errorf("the token %s may report", title)
		}
	}
	if !k.MayReport(ticket, report) {
		t.Error("the token to report with may not")
	}
}

func TestAScriptAfterTheConfigurationBeginsAnotherBoot(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC) }
	p := Progress{Ticket: "t"}
	for i, step := range []struct {
		stage      BootStage
		boots      int
		configured int // minute, 0 = not
		news       bool
	}{
		{stage: StageScript, news: true}, {stage: StageScript}, {stage: StageKernel, news: true},
		{stage: StageIgnition, configured: 4, news: true}, {stage: StageIgnition, configured: 4},
		{stage: StageScript, boots: 1, news: true}, {stage: StageScript, boots: 1}, {stage: StageKernel, boots: 1},
		{stage: StageIgnition, boots: 1, configured: 9, news: true}, {stage: StageIgnition, boots: 1, configured: 9},
		{stage: StageScript, boots: 2, news: true},
	} {
		next, news := p.Reached(step.stage, at(i+1))
		want := time.Time{}
		if step.configured > 0 {
			want = at(step.configured)
		}
		if next.Boots != step.boots || !next.Configured().Equal(want) || news != step.news {
			t.Errorf("step %d, %s: boot %d, configured at %s, news %t", i+1, step.stage, next.Boots, next.Configured(), news)
		}
		p = next
	}
	if !p.ScriptAt.Equal(at(1)) || !p.KernelAt.Equal(at(3)) || !p.IgnitionAt.Equal(at(4)) {
		t.Errorf("the stages of the first boot are forgotten: %+v", p)
	}
}

package netboot

import (
	"fmt"
	"testing"
	"time"

	"ingot/model"
)

func TestGuards(t *testing.T) {
	const loader, script = "loader", "script"
	for title, tc := range map[string]struct {
		guard string
		at    []int // seconds
		far   *model.Progress
		want  string // y or n for each
	}{
		"T05: a fourth loader within 5 minutes is refused": {guard: loader, at: []int{0, 60, 120, 180, 299}, want: "yyynn"},
		"T05: once they have passed it goes on": {
			guard: loader, at: []int{0, 60, 120, 180, 300, 360, 420, 480},
			want: "yyynyyyn",
		},
		"offer, request and their repetitions are one turn": {guard: loader, at: []int{0, 1, 2, 4, 8, 9}, want: "yyyyyy"},
		"so they are in the last turn that is allowed":      {guard: loader, at: []int{0, 20, 40, 41, 42, 50, 51}, want: "yyyyynn"},
		"slow machines do not go round in circles":          {guard: loader, at: []int{0, 150, 300, 450, 600, 750}, want: "yyyyyy"},
		"iPXE that asked for its script ends the circle": {
			guard: loader, at: []int{0, 60, 120, 180, 240}, far: &model.Progress{ScriptAt: armed},
			want: "yyyyy",
		},
		"another ticket's progress does not": {
			guard: loader, at: []int{0, 60, 120, 180}, far: &model.Progress{Ticket: "other", ScriptAt: armed}, want: "yyyn",
		},
		"T05: a fourth script within 3 minutes is refused": {guard: script, at: []int{0, 1, 2, 3, 179, 180}, want: "yyynny"},
		"a script alone does not end the circle of scripts": {
			guard: script, at: []int{0, 1, 2, 3}, far: &model.Progress{ScriptAt: armed},
			want: "yyyn",
		},
		"a kernel does": {
			guard: script, at: []int{0, 1, 2, 3}, far: &model.Progress{ScriptAt: armed, KernelAt: armed},
			want: "yyyy",
		},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewLoaderLimiter()
			if tc.guard == script {
				g = NewScriptLimiter()
			}
			o := model.TicketHolder{Ticket: ticket(nil), Progress: tc.far}
			if tc.far != nil && tc.far.Ticket == "" {
				tc.far.Ticket = o.Ticket.ID
			}
			other := model.TicketHolder{Ticket: ticket(func(t *model.Ticket) { t.ID = "s2-1" })}
			got := ""
			for _, s := range tc.at {
				if g.Allow(o, armed.Add(time.Duration(s)*time.Second)) {
					got += "y"
				} else {
					got += "n"
				}
			}
			if got != tc.want {
				t.Errorf("allowed %s, want %s", got, tc.want)
			}
			if !g.Allow(other, armed.Add(time.Hour)) {
				t.Error("another machine is refused")
			}
		})
	}
	if NewLoaderLimiter().Allow(model.TicketHolder{}, armed) {
		t.Error("a machine without a ticket is allowed a turn")
	}
}

func TestGuardIsBounded(t *testing.T) {
	g := NewScriptLimiter()
	for n := range maxGuarded + 100 {
		o := model.TicketHolder{Ticket: ticket(func(t *model.Ticket) { t.ID = fmt.Sprint(n) })}
		g.Allow(o, armed.Add(time.Duration(n)*time.Microsecond))
	}
	if len(g.turns) != maxGuarded {
		t.Errorf("%d machines are counted", len(g.turns))
	}
	if g.turns["0"].count != 0 || g.turns[fmt.Sprint(maxGuarded+99)].count != 1 {
		t.Error("the machine that began first is not the one that was forgotten")
	}
	g.Allow(model.TicketHolder{Ticket: ticket(nil)}, armed.Add(time.Hour))
	if len(g.turns) != 1 {
		t.Errorf("after an hour %d machines are counted", len(g.turns))
	}
}

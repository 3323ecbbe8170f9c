package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUsed(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	full := Progress{}
	for n := range MaxTicketUses {
		full.Uses = append(full.Uses, TicketUse{
			What: ThingIgnition, Client: fmt.Sprint("10.0.0.", n), Refusal: "", First: at(0), Last: at(0), Count: 1,
		})
	}
	once := Progress{Uses: []TicketUse{{What: ThingScript, Client: "10.0.0.1", Refusal: "", First: at(0), Last: at(0), Count: 1}}}
	tests := map[string]struct {
		before  Progress
		what    TicketThing
		client  string
		refusal TicketRefusal
		want    []TicketUse
		noRoom  bool
	}{
		"the first use is kept": {
			what: ThingScript, client: "10.0.0.1",
			want: []TicketUse{{What: ThingScript, Client: "10.0.0.1", Refusal: "", First: at(5), Last: at(5), Count: 1}},
		},
		"the same again is counted": {
			before: once, what: ThingScript, client: "10.0.0.1",
			want: []TicketUse{{What: ThingScript, Client: "10.0.0.1", Refusal: "", First: at(0), Last: at(5), Count: 2}},
		},
		"another client is a use by itself": {
			before: once, what: ThingScript, client: "10.0.0.2",
			want: append(once.Uses[:1:1], TicketUse{
				What: ThingScript, Client: "10.0.0.2", Refusal: "", First: at(5), Last: at(5), Count: 1,
			}),
		},
		"a refusal is a use by itself": {
			before: once, what: ThingScript, client: "10.0.0.1", refusal: RefusedSpent,
			want: append(once.Uses[:1:1], TicketUse{
				What: ThingScript, Client: "10.0.0.1", Refusal: RefusedSpent, First: at(5), Last: at(5), Count: 1,
			}),
		},
		"there is a bound": {before: full, what: ThingScript, client: "10.0.0.1", want: full.Uses, noRoom: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := test.before.Used(test.what, test.client, test.refusal, at(5))
			if diff := cmp.Diff(test.want, got.Uses); diff != "" || ok == test.noRoom {
				t.Errorf("room %t, uses (-want +got):\n%s", ok, diff)
			}
		})
	}
	if once.Uses[0].Count != 1 {
		t.Error("what others may read was changed")
	}
}

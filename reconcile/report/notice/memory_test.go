package notice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/reconcile/report"
)

var start = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

// trouble is that a server is in Error since minutes after the start.
func trouble(name string, minutes int) report.Notice {
	return report.Notice{
		ID: fmt.Sprintf("%s@%d", name, minutes), Kind: report.NoticeServerError, Object: "server", Name: name, Reason: "BootFailed",
		Since: start.Add(time.Duration(minutes) * time.Minute), Message: "it hangs",
	}
}

func of(kind report.NoticeKind, n report.Notice) report.Notice {
	n.Kind = kind
	n.ID = string(kind) + " " + n.ID
	return n
}

// receiver is told each minute of all that is due.
type receiver struct {
	Memory
	rules Rules
	said  []string
}

func newReceiver(rules Rules) *receiver {
	r := &receiver{rules: rules}
	r.Begin(nil, 1, start)
	return r
}

// at has it be so many minutes after the start, and notes what is told.
func (r *receiver) at(minute int, standing ...report.Notice) {
	now := start.Add(time.Duration(minute) * time.Minute)
	r.Look(standing, now)
	for _, m := range r.Due(standing, r.rules, now) {
		var names []string
		for _, n := range m.Notices {
			names = append(names, n.Name)
		}
		text := fmt.Sprintf("%d: %s %s", minute, m.Kind, strings.Join(names, ","))
		if m.Ended {
			text += " ended"
		}
		r.said = append(r.said, text)
		r.Note(m, now)
	}
}

func (r *receiver) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.said); diff != "" {
		t.Errorf("was told (-want +got):\n%s", diff)
	}
}

func TestTroubleIsToldOnce(t *testing.T) {
	r := newReceiver(Rules{})
	for minute := range 100 {
		r.at(minute, trouble("s1", 0))
	}
	r.at(101)
	r.at(102, trouble("s1", 0)) // as it was: a store was restored
	r.at(103, trouble("s1", 103))
	r.check(t, "0: ServerError s1", "103: ServerError s1")
}

func TestWhatComesAndGoesIsToldOnceInAWhile(t *testing.T) {
	r := newReceiver(Rules{Quiet: 15 * time.Minute})
	for minute := range 32 {
		r.at(minute, trouble("s1", minute))
	}
	r.check(t, "0: ServerError s1", "15: ServerError s1", "30: ServerError s1")
}

func TestThatTroubleHasEndedIsToldToThoseWhoWantIt(t *testing.T) {
	quiet, r := newReceiver(Rules{}), newReceiver(Rules{Ended: true, Settle: 2 * time.Minute})
	for _, to := range []*receiver{quiet, r} {
		to.at(0, trouble("s1", 0), trouble("s2", 0), of(report.NoticeClaimBooted, trouble("web", 0)))
		to.at(1, trouble("s2", 0))
		to.at(2, trouble("s1", 0)) // it was not over yet, and s2 is
		to.at(3, trouble("s1", 0))
		to.at(4, trouble("s1", 4)) // other trouble: it has not ended
		to.at(9, trouble("s1", 4))
		to.at(10)
		to.at(11)
		to.at(12)
		to.at(13)
	}
	quiet.check(t, "0: ServerError s1", "0: ServerError s2", "0: ClaimBooted web", "4: ServerError s1")
	r.check(t, "0: ServerError s1", "0: ServerError s2", "0: ClaimBooted web", "4: ServerError s1", "4: ServerError s2 ended", "12: ServerError s1 ended")
}

func TestTroubleThatComesBackAtOnceHasNotEnded(t *testing.T) {
	r := newReceiver(Rules{Ended: true, Quiet: 15 * time.Minute, Settle: 2 * time.Minute})
	r.at(0, trouble("s1", 0))
	for minute := range 15 {
		r.at(minute, trouble("s1", 1)) // it is not told of yet
	}
	r.check(t, "0: ServerError s1")
}

func TestOnlyWhatIsAskedForIsTold(t *testing.T) {
	r := newReceiver(Rules{Kinds: []report.NoticeKind{report.NoticeBMCLost}, Ended: true})
	r.at(0, trouble("s1", 0), of(report.NoticeBMCLost, trouble("b1", 0)))
	r.at(1)
	r.check(t, "0: BMCLost b1", "1: BMCLost b1 ended")
}

func TestManyAreToldAtOnce(t *testing.T) {
	r := newReceiver(Rules{Ended: true})
	var all []report.Notice
	for i := range maxSingle {
		all = append(all, trouble(fmt.Sprintf("s%d", i), 0))
	}
	r.at(0, append(all, of(report.NoticeBMCLost, trouble("b1", 0)))...)
	for i := range maxSingle + 1 {
		all = append(all, trouble(fmt.Sprintf("t%d", i), 1))
	}
	r.at(1, all...)
	r.at(2)
	r.check(t, "0: ServerError s0", "0: ServerError s1", "0: ServerError s2", "0: ServerError s3", "0: ServerError s4", "0: BMCLost b1",
		"1: ServerError t0,t1,t2,t3,t4,t5", "1: BMCLost b1 ended", "2: ServerError s0,s1,s2,s3,s4,t0,t1,t2,t3,t4,t5 ended")
}

func TestWhatMattersMostIsToldFirst(t *testing.T) {
	r := newReceiver(Rules{})
	r.at(0, of(report.NoticeClaimBooted, trouble("web", 0)), trouble("s1", 0), of(report.NoticeTicketRefused, trouble("s2", 0)))
	r.check(t, "0: TicketRefused s2", "0: ServerError s1", "0: ClaimBooted web")
}

func TestAMessageHasTheSameIDEachTime(t *testing.T) {
	var m Memory
	m.Begin(nil, 1, start)
	id := func(standing ...report.Notice) string { return m.Due(standing, Rules{}, start)[0].ID }
	if got := id(trouble("s1", 0)); got != "s1@0" {
		t.Errorf("got %s", got)
	}
	var many []report.Notice
	for i := range maxSingle + 1 {
		many = append(many, trouble(fmt.Sprintf("s%d", i), 0))
	}
	first, again := id(many...), id(many...)
	if first != again || first == id(append(many, trouble("t", 0))...) {
		t.Error("the ID of several does not say which they are")
	}
	m.Note(Message{Notices: many[:1]}, start)
	m.Look(nil, start)
	if got := m.Due(nil, Rules{Ended: true}, start)[0].ID; got != "s0@0-ended" {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsTakenForTold(t *testing.T) {
	old, young := trouble("old", -10), trouble("young", 10)
	for name, tc := range map[string]struct {
		memory Memory
		fence  uint64
		want   string
	}{
		"at the very first start, what stood before":            {fence: 7, want: "young"},
		"after a restart, what was told":                        {memory: Memory{Fence: 6, Told: map[string]Told{young.ID: {Notice: young}}}, fence: 7, want: "old"},
		"after a restart, nothing that was not":                 {memory: Memory{Fence: 6, Told: map[string]Told{}}, fence: 7, want: "old young"},
		"where another led meanwhile, what stood before":        {memory: Memory{Fence: 5, Told: map[string]Told{}}, fence: 7, want: "young"},
		"where the number is lower, for it was another store":   {memory: Memory{Fence: 9, Told: map[string]Told{old.ID: {Notice: old}}}, fence: 7, want: "young"},
		"and of what another Ingot told, the end is not told":   {fence: 7, want: "young"},
		"after a start that came to nothing, what stood so far": {memory: Memory{Fence: 7}, fence: 7, want: "young"},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.memory
			standing := []report.Notice{old, young}
			m.Begin(standing, tc.fence, start)
			var got []string
			for _, message := range m.Due(standing, Rules{}, start.Add(time.Hour)) {
				got = append(got, message.Notices[0].Name)
			}
			if strings.Join(got, " ") != tc.want || m.Fence != tc.fence {
				t.Errorf("told of %v, want %s; fence %d", got, tc.want, m.Fence)
			}
			m.Look(nil, start.Add(time.Hour))
			for _, message := range m.Due(nil, Rules{Ended: true}, start.Add(2*time.Hour)) {
				t.Errorf("told that %s ended, of which nobody was told", message.Notices[0].Name)
			}
		})
	}
}

func TestWhatIsRememberedOfThePastIsBounded(t *testing.T) {
	r := newReceiver(Rules{})
	var all []report.Notice
	for i := range maxGone + 100 {
		all = append(all, trouble(fmt.Sprintf("s%05d", i), 0))
	}
	r.at(0, all...)
	r.at(1, all[100:]...) // the first are gone first
	r.at(2)
	if n := len(r.Told); n != maxGone {
		t.Errorf("%d are remembered, want %d", n, maxGone)
	}
	if _, there := r.Told[all[0].ID]; there {
		t.Error("the oldest is remembered")
	}
	r.at(2 + int(keepGone/time.Minute))
	if n := len(r.Told); n != 0 {
		t.Errorf("%d are remembered after a week", n)
	}
}

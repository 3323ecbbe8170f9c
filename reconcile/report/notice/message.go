package notice

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"ingot/reconcile/report"
)

// maxSingle is how many notices of one kind are told one by one. More are told together:
// a switch that fails is one message, not a thousand.
const maxSingle = 5

// Rules are what a receiver wants to be told of.
type Rules struct {
	Kinds []report.NoticeKind // empty = all
	// Ended has it told, too, that trouble of which it was told has ended.
	Ended bool
	// Quiet is how long nothing is told again of an object for the same reason: what comes and
	// goes all the time is told of so often.
	Quiet time.Duration
	// Settle is how long trouble must be over before it has ended.
	Settle time.Duration
}

func (r Rules) wants(k report.NoticeKind) bool {
	return len(r.Kinds) == 0 || slices.Contains(r.Kinds, k)
}

// Message is what a receiver is told at once: notices of one kind that began, or that ended.
type Message struct {
	ID      string
	Kind    report.NoticeKind
	Ended   bool
	Notices []report.Notice // at least one
}

// subject is what a notice is about, and why.
type subject struct {
	kind                 report.NoticeKind
	object, name, reason string
}

func subjectOf(n report.Notice) subject { return subject{n.Kind, n.Object, n.Name, n.Reason} }

// troubleOf is the same for whatever reason.
func troubleOf(n report.Notice) subject { return subject{n.Kind, n.Object, n.Name, ""} }

// Due returns what a receiver is to be told now of what stands, what matters most first.
func (m *Memory) Due(standing []report.Notice, rules Rules, now time.Time) []Message {
	var begun, ended []report.Notice
	last := make(map[subject]time.Time) // when it was told
	for _, t := range m.Told {
		if of := subjectOf(t.Notice); t.At.After(last[of]) {
			last[of] = t.At
		}
	}
	troubled := make(map[subject]bool)
	for _, n := range standing {
		if _, told := m.Told[n.ID]; !told && rules.wants(n.Kind) && now.Sub(last[subjectOf(n)]) >= rules.Quiet {
			begun = append(begun, n)
		}
		troubled[troubleOf(n)] = true
	}
	for _, t := range m.Told {
		over := !t.Gone.IsZero() && now.Sub(t.Gone) >= rules.Settle && !troubled[troubleOf(t.Notice)]
		if rules.Ended && rules.wants(t.Kind) && t.Kind.IsTrouble() && !t.At.IsZero() && !t.Ended && over {
			ended = append(ended, t.Notice)
		}
	}
	slices.SortFunc(ended, func(a, b report.Notice) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	var all []Message
	for _, kind := range report.NoticeKinds() {
		all = append(all, together(kind, false, begun)...)
		all = append(all, together(kind, true, ended)...)
	}
	return all
}

// together are the messages of the notices of a kind.
func together(kind report.NoticeKind, ended bool, notices []report.Notice) (all []Message) {
	of := slices.DeleteFunc(slices.Clone(notices), func(n report.Notice) bool { return n.Kind != kind })
	if len(of) > maxSingle {
		return []Message{{ID: idOf(of, ended), Kind: kind, Ended: ended, Notices: of}}
	}
	for i := range of {
		one := of[i : i+1 : i+1]
		all = append(all, Message{ID: idOf(one, ended), Kind: kind, Ended: ended, Notices: one})
	}
	return all
}

// idOf identifies a message: by the notice, where it has one.
func idOf(notices []report.Notice, ended bool) string {
	id := notices[0].ID
	if len(notices) > 1 {
		var ids []string
		for _, n := range notices {
			ids = append(ids, n.ID)
		}
		sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
		id = hex.EncodeToString(sum[:16])
	}
	if ended {
		return id + "-ended"
	}
	return id
}

package conversation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

const mac = "02:00:00:00:00:01"

var t0 = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// at is an event so many seconds after t0.
func at(seconds int, asked string, result model.CardResult) model.CardEvent {
	return model.CardEvent{
		At: t0.Add(time.Duration(seconds) * time.Second), Protocol: model.CardDHCPv4, Asked: asked, Result: result,
		Routine: result == model.CardUnanswered || result == model.CardLimited,
	}
}

func lines(events []model.CardEvent) []string {
	var all []string
	for _, e := range events {
		line := fmt.Sprintf("+%v %s %s", e.At.Sub(t0), e.Asked, e.Result)
		if e.Times > 0 {
			line += fmt.Sprintf(" x%d until +%v", e.Times, e.Last.Sub(t0))
		}
		all = append(all, line)
	}
	return all
}

func TestWhatComesAgainIsCounted(t *testing.T) {
	for title, tc := range map[string]struct {
		events []model.CardEvent
		want   []string
	}{
		"an event that is like the last": {
			events: []model.CardEvent{at(0, "DISCOVER", "answered"), at(2, "DISCOVER", "answered"), at(6, "DISCOVER", "answered")},
			want:   []string{"+0s DISCOVER answered x3 until +6s"},
		},
		"one with another result is another": {
			events: []model.CardEvent{at(0, "DISCOVER", "unanswered"), at(2, "DISCOVER", "answered")},
			want:   []string{"+0s DISCOVER unanswered", "+2s DISCOVER answered"},
		},
		"a round of a boot is not, for the order matters": {
			events: []model.CardEvent{at(0, "DISCOVER", "answered"), at(1, "REQUEST", "served"), at(2, "DISCOVER", "answered"), at(3, "REQUEST", "served")},
			want:   []string{"+0s DISCOVER answered", "+1s REQUEST served", "+2s DISCOVER answered", "+3s REQUEST served"},
		},
		"what is not answered, in turn": {
			events: []model.CardEvent{at(0, "DISCOVER", "unanswered"), at(1, "SOLICIT", "unanswered"), at(2, "DISCOVER", "unanswered"), at(3, "SOLICIT", "unanswered")},
			want:   []string{"+0s DISCOVER unanswered x2 until +2s", "+1s SOLICIT unanswered x2 until +3s"},
		},
		"what was long ago is another": {
			events: []model.CardEvent{
				at(0, "DISCOVER", "unanswered"), at(1, "a", "served"), at(2, "b", "served"), at(3, "c", "served"), at(4, "d", "served"),
				at(5, "DISCOVER", "unanswered"),
			},
			want: []string{"+0s DISCOVER unanswered", "+1s a served", "+2s b served", "+3s c served", "+4s d served", "+5s DISCOVER unanswered"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			l := New(nil)
			for _, e := range tc.events {
				l.Add(mac, e)
			}
			if diff := cmp.Diff(tc.want, lines(l.Of(mac))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBytesAndTimeOfWhatComesAgainAddUp(t *testing.T) {
	l := New(nil)
	e := at(0, "kernel", model.CardServed)
	e.Bytes, e.Seconds = 100, 0.5
	l.Add(mac, e)
	l.Add(mac, e)
	if got := l.Of(mac)[0]; got.Bytes != 200 || got.Seconds != 1 || got.Times != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestTheNewestEventsOfACardAreKept(t *testing.T) {
	l := New(nil)
	for i := range 3 * maxEvents {
		l.Add(mac, at(i, fmt.Sprint(i), model.CardAnswered))
	}
	got := l.Of(mac)
	if len(got) != maxEvents || got[0].Asked != fmt.Sprint(2*maxEvents) || got[maxEvents-1].Asked != fmt.Sprint(3*maxEvents-1) {
		t.Errorf("%d are kept, from %s to %s", len(got), got[0].Asked, got[len(got)-1].Asked)
	}
	got[0].Asked = "changed by who read it"
	if l.Of(mac)[0].Asked == got[0].Asked {
		t.Error("what was read is shared")
	}
}

// Somebody who shows many MAC addresses makes nobody forgotten who was served.
func TestStrangersMakeNobodyForgotten(t *testing.T) {
	l := New(prometheus.NewRegistry())
	l.Add(mac, at(0, "DISCOVER", model.CardAnswered))
	l.Add(mac, at(1, "REQUEST", model.CardServed))
	l.Add("02:00:00:00:00:02", at(1, "DISCOVER", model.CardAnswered))
	for i := range 3 * maxUnknown {
		l.Add(fmt.Sprintf("06:%x", i), at(i, "DISCOVER", model.CardAnswered))
	}
	if want := []string{"+0s DISCOVER answered", "+1s REQUEST served"}; !cmp.Equal(want, lines(l.Of(mac))) {
		t.Errorf("of one that was served %q is kept", lines(l.Of(mac)))
	}
	if got := l.Of("02:00:00:00:00:02"); got != nil {
		t.Errorf("of one that was not %q is kept", lines(got))
	}
	if n, events := l.unknown.Size(); n > maxUnknown || events > maxUnknown {
		t.Errorf("%d events of %d strangers are kept", events, n)
	}
	if n := l.cards(); n != maxUnknown+1 {
		t.Errorf("%v cards are counted", n)
	}
}

func TestCardsThatWereServedAreBoundedToo(t *testing.T) {
	l := New(nil)
	for i := range 2 * maxKnown / maxEvents {
		for j := range maxEvents {
			l.Add(fmt.Sprint(i), at(j, fmt.Sprint(j), model.CardServed))
		}
	}
	if n, events := l.known.Size(); events > maxKnown || n != maxKnown/maxEvents {
		t.Errorf("%d events of %d cards are kept", events, n)
	}
	if n, _ := l.unknown.Size(); n != 0 {
		t.Errorf("%d are kept as strangers too", n)
	}
}

func TestTextsFromOutsideAreMadePrintable(t *testing.T) {
	l := New(nil)
	l.Add(mac, model.CardEvent{Asked: "\x1b[2J", From: "eth\x00\xff", Answer: strings.Repeat("ä", 100)})
	got := l.Of(mac)[0]
	if got.Asked != "?[2J" || got.From != "eth??" || got.Answer != strings.Repeat("?", maxText) {
		t.Errorf("got %+v", got)
	}
	l.Add("", model.CardEvent{})
	if n, _ := l.unknown.Size(); n != 1 {
		t.Errorf("%d cards are kept: one without a MAC address is none", n)
	}
}

func TestACardIsLimitedForAMinute(t *testing.T) {
	events := []model.CardEvent{at(0, "DISCOVER", model.CardLimited), at(9, "DISCOVER", model.CardAnswered)}
	events[0].Last = t0.Add(5 * time.Second)
	for after, want := range map[time.Duration]bool{6 * time.Second: true, 64 * time.Second: true, 65 * time.Second: false} {
		if _, got := Limited(events, t0.Add(after)); got != want {
			t.Errorf("%s later: %t", after, got)
		}
	}
	if _, got := Limited(events[1:], t0); got {
		t.Error("one that was answered is limited")
	}
}

// BenchmarkAdd is what a packet costs that is not answered.
func BenchmarkAdd(b *testing.B) {
	l := New(nil)
	e := at(0, "DISCOVER", model.CardLimited)
	b.ReportAllocs()
	for b.Loop() {
		l.Add(mac, e)
	}
}

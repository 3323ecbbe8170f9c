package reconcile

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestPushLimiter(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		pushes int // made at start
		after  time.Duration
		urgent bool
		wait   time.Duration
	}{
		"the first is made at once":                                     {},
		"the third is made at once":                                     {pushes: 2},
		"the fourth waits, for three are for what waits":                {pushes: 3, wait: 10 * time.Second},
		"a fourth that is not urgent waits, however short the interval": {pushes: 3, after: 2 * time.Second, wait: 8 * time.Second},
		"an urgent fourth is made at once":                              {pushes: 3, urgent: true},
		"an urgent sixth is made at once":                               {pushes: 5, urgent: true},
		"an urgent seventh waits":                                       {pushes: 6, urgent: true, wait: 10 * time.Second},
		"what is not urgent waits until there is room":                  {pushes: 6, wait: 40 * time.Second},
		"room comes back with time":                                     {pushes: 6, after: 35 * time.Second, wait: 5 * time.Second},
		"an urgent one finds the first room":                            {pushes: 6, after: 10 * time.Second, urgent: true},
		"after a minute all of it is there":                             {pushes: 6, after: time.Minute},
		"a clock that was set back holds up only so long":               {pushes: 6, after: -time.Hour, urgent: true, wait: 10 * time.Second},
		"more pushes than allowed are not held against it":              {pushes: 60, urgent: true, wait: 10 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := NewPushLimiter()
			for range test.pushes {
				l.Pushed(start)
			}
			now := start.Add(test.after)
			if got := l.Next(now, test.urgent).Sub(now); got != test.wait {
				t.Errorf("waits %s, want %s", got, test.wait)
			}
		})
	}
}

func TestPushLimiterObeysTheServer(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := NewPushLimiter()
	l.Postpone(now, 2*time.Minute)
	for after, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Minute: time.Minute, 3 * time.Minute: 0} {
		if got := l.Next(now.Add(after), true).Sub(now.Add(after)); got != want {
			t.Errorf("after %s an urgent push waits %s, want %s", after, got, want)
		}
	}
	l.Postpone(now, 24*time.Hour)
	if got := l.Next(now, true).Sub(now); got != maxPostponed {
		t.Errorf("waits %s for a server that asks for too much, want %s", got, maxPostponed)
	}
	if got := l.Next(now.Add(-24*time.Hour), true).Sub(now.Add(-24 * time.Hour)); got != maxPostponed {
		t.Errorf("waits %s after the clock was set back, want %s", got, maxPostponed)
	}
}

// However pushes come, a minute never sees more than the burst and what comes back.
func TestPushLimiterInTheLongRun(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := NewPushLimiter()
	var made []time.Time
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(time.Duration(random.IntN(8000)) * time.Millisecond) {
		if l.Next(now, random.IntN(2) == 0).After(now) {
			continue
		}
		l.Pushed(now)
		made = append(made, now)
	}
	for i, from := range made {
		n := 0
		for _, at := range made[i:] {
			if at.Sub(from) < time.Minute {
				n++
			}
		}
		if n > pushBurst+int(time.Minute/pushEvery) {
			t.Fatalf("%d pushes in the minute from %s", n, from)
		}
	}
	if least := int(time.Hour/pushEvery) * 9 / 10; len(made) < least {
		t.Errorf("%d pushes in an hour, want at least %d", len(made), least)
	}
}

package reconcile

import (
	"testing"
	"time"
)

var paceBegins = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// paced has plans made that each take a time, and that something waits for or nothing,
// and returns the pauses between them and the time of all.
func paced(p *pace, now time.Time, plans int, took time.Duration, awaited bool) (pauses, all time.Duration) {
	for range plans {
		now = now.Add(took)
		next := p.pause(now, took)
		pause := next.most
		if awaited {
			pause = next.least
		}
		now = now.Add(pause)
		pauses, all = pauses+pause, all+took+pause
	}
	return pauses, all
}

func TestPlansInARowNeedNoPauseAfterAQuietTime(t *testing.T) {
	for name, tc := range map[string]struct {
		plans   int
		awaited bool
	}{
		"that something waits for": {plans: 7, awaited: true},
		"that nothing waits for":   {plans: 3, awaited: false},
	} {
		p := newPace()
		p.pause(paceBegins, time.Millisecond)
		if pauses, _ := paced(p, paceBegins.Add(time.Minute), tc.plans, 140*time.Millisecond, tc.awaited); pauses != 0 {
			t.Errorf("%d plans %s: paused for %s", tc.plans, name, pauses)
		}
	}
}

func TestAFewPlansThatSomethingWaitsForNeedNoPauseInABusyFleet(t *testing.T) {
	p := newPace()
	paced(p, paceBegins, 200, 100*time.Millisecond, false)
	if pauses, _ := paced(p, p.at, 5, 100*time.Millisecond, true); pauses != 0 {
		t.Errorf("paused for %s", pauses)
	}
}

func TestPlanningWithoutAnEndTakesAQuarterOfACore(t *testing.T) {
	for _, awaited := range []bool{true, false} {
		for _, took := range []time.Duration{30 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond} {
			p := newPace()
			paced(p, paceBegins, int(4*time.Second/took), took, awaited)
			if pauses, all := paced(p, p.at, 100, took, awaited); pauses < all*70/100 || pauses > all*80/100 {
				t.Errorf("of %s, of plans of %s each, awaited %t, %s were pauses", all, took, awaited, pauses)
			}
		}
	}
}

func TestBusyFleetHasOnePlanPerInterval(t *testing.T) {
	p := newPace()
	const plans = 50
	if _, all := paced(p, paceBegins, plans, time.Millisecond, false); all < plans*planEvery*95/100 || all > plans*planEvery*105/100 {
		t.Errorf("%d plans in %s", plans, all)
	}
}

func TestNoPauseIsLongerThanItsLimit(t *testing.T) {
	p := newPace()
	now := paceBegins
	for range 20 {
		now = now.Add(2 * time.Second)
		if next := p.pause(now, 2*time.Second); next.most > maxPause || next.least > next.most {
			t.Fatalf("paused for %s to %s", next.least, next.most)
		}
		now = now.Add(maxPause)
	}
	if next := p.pause(now.Add(5*time.Second), time.Millisecond); next != (pause{}) {
		t.Errorf("paused for %s to %s after a quiet time", next.least, next.most)
	}
}

package reconcile

import (
	"testing"
	"time"
)

// paced has a pace made of plans that each take a time, with the pauses that it asks
// for, and returns these and the time of all.
func paced(p *pace, now time.Time, plans int, took time.Duration) (pauses, all time.Duration) {
	for range plans {
		now = now.Add(took)
		pause := p.pause(now, took)
		now = now.Add(pause)
		pauses, all = pauses+pause, all+took+pause
	}
	return pauses, all
}

func TestPlansInARowNeedNoPauseAfterAQuietTime(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	p := &pace{}
	p.pause(now, time.Millisecond)
	if pauses, _ := paced(p, now.Add(time.Minute), 7, 140*time.Millisecond); pauses != 0 {
		t.Errorf("paused for %s", pauses)
	}
}

func TestPlanningWithoutAnEndTakesAThirdOfACore(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, took := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 120 * time.Millisecond} {
		p := &pace{}
		paced(p, now, 100, took)
		now := p.at
		if pauses, all := paced(p, now, 100, took); pauses < all*60/100 || pauses > all*70/100 {
			t.Errorf("of %s, of plans of %s each, %s were pauses", all, took, pauses)
		}
	}
}

func TestNoPauseIsLongerThanAQuarterOfASecond(t *testing.T) {
	p := &pace{}
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for range 20 {
		now = now.Add(2 * time.Second)
		if pause := p.pause(now, 2*time.Second); pause > maxPause {
			t.Fatalf("paused for %s", pause)
		}
		now = now.Add(maxPause)
	}
	if pause := p.pause(now.Add(5*time.Second), time.Millisecond); pause != 0 {
		t.Errorf("paused for %s after a quiet time", pause)
	}
}

package reconcile

import (
	"testing"
	"time"
)

// Who shows the fleet as it changes is told of each snapshot, also of one that is not there
// any more, and nobody waits for who does not look.
func TestWhoShowsTheFleetIsToldOfSnapshots(t *testing.T) {
	var l Loop
	first := l.Shown()
	if l.Shown() != first {
		t.Error("two who wait for the same snapshot wait for two")
	}
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	if isClosed(first) {
		t.Error("it is told of before there is one")
	}
	l.show(&Snapshot{}, time.Time{}, saved{})
	second := l.Shown()
	if !isClosed(first) || isClosed(second) {
		t.Errorf("with a snapshot: first told %v, second told %v", isClosed(first), isClosed(second))
	}
	l.show(nil, time.Time{}, saved{})
	l.show(nil, time.Time{}, saved{}) // nobody waits
	if !isClosed(second) {
		t.Error("it is not told that the snapshot is gone")
	}
}

package reconcile

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/reading"
)

// A standby has no snapshots: what it shows it plans for itself, and a viewer who asks again
// and again does not have it plan each time.
func TestWithoutASnapshotAReportIsMadeAgainOnceItMayBeAnother(t *testing.T) {
	in := plantest.BigFleet(3, 1)
	for name, tc := range map[string]struct {
		change func(s *still, l *Loop, now *time.Time, fence *uint64)
		again  bool // the same report is shown
	}{
		"nothing changed":         {func(*still, *Loop, *time.Time, *uint64) {}, true},
		"part of a second passed": {func(_ *still, _ *Loop, now *time.Time, _ *uint64) { *now = now.Add(900 * time.Millisecond) }, true},
		"a second passed":         {func(_ *still, _ *Loop, now *time.Time, _ *uint64) { *now = now.Add(time.Second) }, false},
		"the store changed":       {func(s *still, _ *Loop, _ *time.Time, _ *uint64) { s.change(0, 1) }, false},
		"another Ingot leads":     {func(_ *still, _ *Loop, _ *time.Time, fence *uint64) { *fence++ }, false},
		"another revision is in force": {func(_ *still, l *Loop, _ *time.Time, _ *uint64) {
			d := *in.Desired
			l.Desired = func() *model.Desired { return &d }
		}, false},
		"this process may do less": {func(_ *still, l *Loop, _ *time.Time, _ *uint64) {
			l.State = func() State { return State{ObserveOnly: "because"} }
		}, false},
		"a machine was read":           {func(_ *still, l *Loop, _ *time.Time, _ *uint64) { l.noteReading("bmc00000-system-0") }, false},
		"the status branch was pushed": {func(_ *still, l *Loop, _ *time.Time, _ *uint64) { l.Announced(map[model.ServerName]model.Intent{}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			now, fence := in.Now, uint64(1)
			store := &still{in.Observed}
			loop := NewLoop(Options{
				Desired: func() *model.Desired { return in.Desired }, Store: store, Policy: in.Policy, Clock: func() time.Time { return now },
			})
			r := &Reporter{Loop: loop, Fence: func() uint64 { return fence }}
			first := r.Report()
			tc.change(store, loop, &now, &fence)
			if again := r.Report() == first; again != tc.again {
				t.Errorf("the same report is shown: %t, want %t", again, tc.again)
			}
		})
	}
}

// noteReading notes that the power of a server was read.
func (l *Loop) noteReading(name model.ServerName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readings[name], l.snapshot = reading.State{}, nil
}

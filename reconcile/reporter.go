package reconcile

import (
	"sync"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// Reporter makes the reports of all who show the fleet, of the loop's snapshots: one
// report a snapshot, in which each document is made once. Where the loop has no snapshot
// it plans for itself and carries nothing out, at most once a second while nothing changes,
// and so where the loop planned for records that the store does not have: at most once a
// snapshot.
type Reporter struct {
	Loop   *Loop
	Fence  func() uint64
	Holder model.Holder
	// Projector makes the reports, and is used by this Reporter alone.
	Projector report.Projector

	mu   sync.Mutex // guards what is below
	last *Reported
	of   *Snapshot // that last was made of
}

// Reported is a report with what it was made of. It is shared: nobody changes it.
type Reported struct {
	*model.Report // without a subject
	Shown         *report.Documents
	Input         *world.Input
	Result        *plan.Result
}

// ownLasts is for how long what was planned without a snapshot is shown while nothing that
// it was planned for changes: on a standby many requests must not cost a plan each.
const ownLasts = time.Second

// Report reports what is so now, nil while Git was never read.
func (r *Reporter) Report() *Reported {
	r.mu.Lock()
	defer r.mu.Unlock()
	fence, snapshot := r.Fence(), r.Loop.Snapshot()
	if r.last != nil && snapshot == r.of && fence == r.last.Fence && (snapshot != nil || r.ownIsCurrent()) {
		return r.last
	}
	in, result := r.planned(snapshot)
	if in == nil {
		return nil
	}
	made, shown := r.Projector.Report(in, result, fence, r.Holder)
	r.of, r.last = snapshot, &Reported{made, shown, in, result}
	return r.last
}

// ownIsCurrent reports whether what was planned last without a snapshot still shows what is
// so.
func (r *Reporter) ownIsCurrent() bool {
	in := r.last.Input
	return r.Loop.Clock().Sub(in.Now) < ownLasts && r.Loop.isStored(in)
}

// planned returns what a report is made of: a snapshot that has it all, or what is
// planned now.
func (r *Reporter) planned(s *Snapshot) (*world.Input, *plan.Result) {
	var in *world.Input
	switch {
	case s == nil:
		if in, _ = r.Loop.stored(r.Loop.Clock()); in == nil {
			return nil, nil
		}
	case s.Result != nil:
		return s.In, s.Result
	default:
		own := *s.In
		in = &own
	}
	return in, plan.Plan(in)
}

// ServerStatus is what the report says of a server.
func (r *Reported) ServerStatus(name model.ServerName) report.ServerStatus {
	return r.Documents["servers/"+string(name)+".yaml"].Object.(*report.Document).Status.(report.ServerStatus)
}

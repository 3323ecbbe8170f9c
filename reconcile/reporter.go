package reconcile

import (
	"sync"

	"ingot/model"
)

// Reporter makes reports of what the store has, for all who show them: each document is
// made once. It plans for that and carries nothing out, so it works where the loop does
// not run. It plans for the records as they are stored, and not as moves under way will
// leave them, for those may never come to be.
type Reporter struct {
	Loop   *Loop
	Fence  func() uint64
	Holder model.Holder

	mu        sync.Mutex // guards projector
	projector *Projector
}

// Reported is a report with what it was made of.
type Reported struct {
	*model.Report // without a subject
	Input         *Input
	Result        *Result
}

// Report reports what is so now, nil while Git was never read.
func (r *Reporter) Report() *Reported {
	in := r.Loop.Stored(r.Loop.Clock())
	if in == nil {
		return nil
	}
	result := Plan(in)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.projector == nil {
		r.projector = NewProjector()
	}
	return &Reported{r.projector.Report(in, result, r.Fence(), r.Holder), in, result}
}

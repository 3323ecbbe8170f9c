package reconcile

import (
	"sync"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
)

// Reporter makes reports of what the store has, for all who show them: each document is
// made once. It plans for that and carries nothing out, so it works where the loop does
// not run. It plans for the records as they are stored, and not as moves under way will
// leave them, for those may never come to be.
type Reporter struct {
	Loop   *Loop
	Fence  func() uint64
	Holder model.Holder

	mu        sync.Mutex // guards what is below
	projector *report.Projector
	digests   plan.Digests
}

// Reported is a report with what it was made of.
type Reported struct {
	*model.Report // without a subject
	Input         *plan.Input
	Result        *plan.Result
}

// Report reports what is so now, nil while Git was never read.
func (r *Reporter) Report() *Reported {
	in := r.Loop.Stored(r.Loop.Clock())
	if in == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	in.Digests = &r.digests
	result := plan.Plan(in)
	if r.projector == nil {
		r.projector = report.NewProjector()
	}
	return &Reported{r.projector.Report(in, result, r.Fence(), r.Holder), in, result}
}

// ServerStatus is what the report says of a server.
func (r *Reported) ServerStatus(name model.ServerName) report.ServerStatus {
	return r.Documents["servers/"+string(name)+".yaml"].Object.(*report.Document).Status.(report.ServerStatus)
}

package query

import (
	"errors"

	"ingot/model"
	"ingot/reconcile/report"
)

// Rows are the lists of one report, each sorted by name. They are shared: nobody changes
// them.
type Rows struct {
	// Generation is another number whenever something of the report that is no text or
	// picture is another, from 1.
	Generation uint64
	// Revision is revision.yaml, nil while Git was never read.
	Revision  *report.Revision
	Servers   []*Server
	Claims    []*Claim
	BMCs      []*BMC
	Endpoints []*Endpoint
	Problems  []*Problem
	// ProblemsDocument is problems.yaml, nil while Git was never read. Where there are very
	// many problems it says how many it leaves out.
	ProblemsDocument *report.Problems

	steps []step // that led here, the newest last
}

// ReadRows makes rows of the files of the status branch. With an error it returns those that
// could be made.
func ReadRows(files map[string][]byte) (*Rows, error) {
	r := &model.Report{Documents: make(map[string]*model.Document, len(files))}
	var errs []error
	for path, data := range files {
		object, err := report.ReadDocument(path, data)
		switch {
		case err != nil:
			errs = append(errs, err)
		case object != nil:
			r.Documents[path] = &model.Document{Object: object}
		}
	}
	return NewKeeper().Rows(r, nil), errors.Join(errs...)
}

// commonOf is what every row has, of an object.
func commonOf(d *report.Document, manifest *model.Meta) (Common, bool) {
	g, ok := report.GlanceOf(d)
	c := Common{
		Name: g.Name, State: g.State, Since: g.Since, Why: g.Why, Actor: g.Actor, WhySince: g.WhySince, Labels: d.Metadata.Labels,
		doc: d,
	}
	if manifest != nil {
		c.Manifest = manifest.Source
	}
	return c, ok
}

// problemsOf are the rows of all problems, in the order of files and lines.
func problemsOf(p *report.Problems) []*Problem {
	if p == nil {
		return nil
	}
	rows := make([]*Problem, len(p.Problems))
	for i := range p.Problems {
		rows[i] = Problems.Ready(problem(p.Problems[i]))
	}
	return Problems.Sorted(rows)
}

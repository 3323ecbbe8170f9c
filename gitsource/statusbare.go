package gitsource

import (
	"context"
	"errors"
	"maps"
	"time"

	"ingot/model"
)

// refusals is what is known of a server that refuses what people wrote.
type refusals struct {
	until     time.Time // reports are published without texts, for the server refused them
	notBefore time.Time // before then that is not tried, for it was refused too
}

// The documents of a bare report.
var (
	bareReadme   = &model.Document{Text: "# Fleet\n\nThe server refused this page by a rule of its own, such as a scanner for secrets. Ingot's log says what it found.\n"}
	bareProblems = &model.Document{Text: "# The server refused this list by a rule of its own, such as a scanner for secrets. Ingot's log says what it found.\nproblems: []\n"}
)

// publishOrBare publishes the report. If the server refuses it by rule, it is offered
// once more without the texts that people wrote: one tenant's mistake, which a scanner
// takes for a secret, is not to keep the records of all from being published.
func (b *StatusBranch) publishOrBare(ctx context.Context, report *model.Report, now time.Time) (Published, error) {
	if now.Before(b.bare.until) {
		p, err := b.write(ctx, bareOf(report))
		p.Bare = true
		return p, err
	}
	p, err := b.write(ctx, report)
	if !errors.Is(err, ErrRejected) || now.Before(b.bare.notBefore) {
		return p, err
	}
	b.log.WarnContext(ctx, "status is published without the texts that people wrote", "err", message(err))
	p, bareErr := b.write(ctx, bareOf(report))
	if bareErr != nil {
		b.bare.notBefore = now.Add(recheckAfter)
		return Published{}, err
	}
	b.bare.until = now.Add(recheckAfter)
	p.Bare = true
	return p, nil
}

// bareOf returns the report without texts that people wrote.
func bareOf(r *model.Report) *model.Report {
	c := *r
	c.Subject, c.Body = "", nil
	c.Documents = maps.Clone(r.Documents)
	for path, doc := range map[string]*model.Document{model.ReportReadme: bareReadme, model.ReportProblems: bareProblems} {
		if c.Documents[path] != nil {
			c.Documents[path] = doc
		}
	}
	return &c
}

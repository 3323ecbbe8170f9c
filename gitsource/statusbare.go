package gitsource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"ingot/model"
)

// refusals is what is known of a server that refuses what people wrote.
type refusals struct {
	until     time.Time // reports are published without texts, for the server refused them
	notBefore time.Time // before then that is not tried, for it was refused too
	said      time.Time // when it was last logged
}

// sayRefusedEvery is how often it is logged that texts are refused: they are offered again
// and again.
const sayRefusedEvery = time.Hour

var bareReadme = &model.Document{Text: "# Fleet\n\nThe server refused this page by a rule of its own, such as a scanner for secrets. Ingot's log says what it found.\n"}

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
	p, bareErr := b.write(ctx, bareOf(report))
	if bareErr != nil {
		b.bare.notBefore = now.Add(recheckAfter)
		return Published{}, err
	}
	if now.Sub(b.bare.said) >= sayRefusedEvery {
		b.bare.said = now
		b.log.WarnContext(ctx, "status is published without the texts that people wrote, because the server refuses them", "err", message(err))
	}
	b.bare.until = now.Add(recheckAfter)
	p.Bare = true
	return p, nil
}

// bareOf returns the report without texts that people wrote.
func bareOf(r *model.Report) *model.Report {
	c := *r
	c.Subject, c.Body = "", nil
	c.Documents = make(map[string]*model.Document, len(r.Documents))
	for path, doc := range r.Documents {
		switch {
		case path == model.ReportReadme:
			doc = bareReadme
		case doc != nil && doc.Object != nil:
			doc = withoutTexts(doc)
		case strings.HasPrefix(path, model.ReportRacks):
			continue
		}
		c.Documents[path] = doc
	}
	return &c
}

// textFields are the fields of documents that quote what people, BMCs and servers wrote,
// and that no record is restored by.
var textFields = []string{"message", "labels", "rack"} // a rack is named by a label

// withoutTexts returns a document without its textFields. One that cannot be read as an
// object stays as it is.
func withoutTexts(d *model.Document) *model.Document {
	raw, err := json.Marshal(d.Object)
	if err != nil {
		return d
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return d
	}
	dropTexts(object)
	return &model.Document{Object: object}
}

func dropTexts(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range textFields {
			delete(v, name)
		}
		for _, part := range v {
			dropTexts(part)
		}
	case []any:
		for _, part := range v {
			dropTexts(part)
		}
	}
}

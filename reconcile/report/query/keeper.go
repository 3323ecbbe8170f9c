package query

import (
	"maps"
	"sync"

	"ingot/model"
	"ingot/reconcile/report"
)

// Keeper makes the rows of one report after another. It keeps those whose documents did not
// change, so that what did not change costs next to nothing. It is safe for concurrent use.
type Keeper struct {
	mu      sync.Mutex // guards what is below
	of      *model.Report
	desired *model.Desired
	rows    *Rows

	servers    shelf[*Server]
	claims     shelf[*Claim]
	bmcs       shelf[*BMC]
	endpoints  shelf[*Endpoint]
	others     map[string]*model.Document // of what has no row of its own
	problemsOf *report.Problems           // that the rows of problems were made of
}

// NewKeeper returns a Keeper that has made no rows.
func NewKeeper() *Keeper {
	return &Keeper{
		rows: &Rows{}, servers: newShelf(Servers), claims: newShelf(Claims), bmcs: newShelf(BMCs), endpoints: newShelf(Endpoints),
		others: make(map[string]*model.Document),
	}
}

// Rows returns the lists of a report: the same Rows again where nothing in them is another.
// Desired is what the report was made of, which has where each object stands in Git; nil =
// nobody knows.
func (k *Keeper) Rows(r *model.Report, desired *model.Desired) *Rows {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == r && k.desired == desired && k.rows.Generation > 0 {
		return k.rows
	}
	k.of, k.desired = r, desired
	changed := k.take(r)
	for _, list := range []interface{ finish() bool }{&k.servers, &k.claims, &k.bmcs, &k.endpoints} {
		changed = list.finish() || changed
	}
	if !changed && k.rows.Generation > 0 {
		return k.rows
	}
	rows := *k.rows
	rows.Generation++
	rows.Servers, rows.Claims, rows.BMCs, rows.Endpoints = k.servers.rows, k.claims.rows, k.bmcs.rows, k.endpoints.rows
	rows.Revision, rows.Problems = k.revision(), k.problems(rows.Problems)
	k.rows = &rows
	return k.rows
}

// take puts each document where it belongs, and reports whether one of those without a row
// is another.
func (k *Keeper) take(r *model.Report) (changed bool) {
	met := 0
	for path, doc := range r.Documents {
		if doc.Object == nil {
			continue // a text or picture, which says nothing that the others do not say
		}
		d, _ := doc.Object.(*report.Document)
		if d != nil && k.takeRow(path, doc, d) {
			continue
		}
		met++
		if k.others[path] != doc {
			k.others[path] = doc
			changed = true
		}
	}
	if met < len(k.others) {
		maps.DeleteFunc(k.others, func(path string, _ *model.Document) bool { return r.Documents[path] == nil })
		changed = true
	}
	return changed
}

// takeRow takes the document of an object that has a row; false for any other.
func (k *Keeper) takeRow(path string, doc *model.Document, d *report.Document) bool {
	switch d.Status.(type) {
	case report.ServerStatus:
		m := k.server(d)
		k.servers.take(path, doc, metaOf(m), func(c Common) *Server { return server(d, c, m) })
	case report.ClaimStatus, report.BootConfigurationStatus:
		k.claims.take(path, doc, k.claim(d), func(c Common) *Claim { return claim(d, c) })
	case report.BMCStatus:
		k.bmcs.take(path, doc, k.bmc(d), func(c Common) *BMC { return bmc(d, c) })
	case report.EndpointStatus:
		k.endpoints.take(path, doc, k.endpoint(d), func(c Common) *Endpoint { return endpoint(d, c) })
	default:
		return false
	}
	return true
}

// server returns the manifest of a server, nil if it is not known.
func (k *Keeper) server(d *report.Document) *model.Server {
	if k.desired == nil {
		return nil
	}
	return k.desired.Servers[model.ServerName(d.Metadata.Name)]
}

func metaOf(m *model.Server) *model.Meta {
	if m == nil {
		return nil
	}
	return &m.Meta
}

func (k *Keeper) claim(d *report.Document) *model.Meta {
	if k.desired == nil {
		return nil
	}
	id := model.Identity{Kind: model.Kind(d.Kind), Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}
	if c := k.desired.Claims[id.ClaimName()]; c != nil {
		return &c.Meta
	}
	return nil
}

func (k *Keeper) bmc(d *report.Document) *model.Meta {
	if k.desired == nil {
		return nil
	}
	if b := k.desired.BMCs[model.BMCName(d.Metadata.Name)]; b != nil {
		return &b.Meta
	}
	return nil
}

func (k *Keeper) endpoint(d *report.Document) *model.Meta {
	if k.desired == nil {
		return nil
	}
	if e := k.desired.Endpoints[d.Metadata.Name]; e != nil {
		return &e.Meta
	}
	return nil
}

func (k *Keeper) revision() *report.Revision {
	if doc := k.others[model.ReportRevision]; doc != nil {
		r, _ := doc.Object.(*report.Revision)
		return r
	}
	return nil
}

// problems are the rows of the problems, those that were made before if they are the same.
func (k *Keeper) problems(before []*Problem) []*Problem {
	doc := k.others[model.ReportProblems]
	if doc == nil {
		return nil
	}
	p, _ := doc.Object.(*report.Problems)
	if p == nil || len(p.Problems) == 0 {
		return nil
	}
	if len(before) > 0 && k.problemsOf == p {
		return before
	}
	k.problemsOf = p
	return problemsOf(p)
}

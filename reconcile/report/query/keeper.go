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

	servers   shelf[*Server]
	claims    shelf[*Claim]
	bmcs      shelf[*BMC]
	endpoints shelf[*Endpoint]
	others    map[string]*model.Document // of what has no row of its own

}

// NewKeeper returns a Keeper that has made no rows.
func NewKeeper() *Keeper {
	return &Keeper{
		rows:      &Rows{},
		servers:   newShelf(Servers, func(*Server) string { return kindServer }),
		claims:    newShelf(Claims, func(r *Claim) string { return r.Kind }),
		bmcs:      newShelf(BMCs, func(*BMC) string { return kindBMC }),
		endpoints: newShelf(Endpoints, func(*Endpoint) string { return kindEndpoint }),
		others:    make(map[string]*model.Document),
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
	changes := k.take(r)
	for _, list := range []interface{ finish() []Change }{&k.servers, &k.claims, &k.bmcs, &k.endpoints} {
		changes = append(changes, list.finish()...)
	}
	if len(changes) == 0 && k.rows.Generation > 0 {
		return k.rows
	}
	rows := *k.rows
	rows.Generation++
	rows.Servers, rows.Claims, rows.BMCs, rows.Endpoints = k.servers.rows, k.claims.rows, k.bmcs.rows, k.endpoints.rows
	rows.Revision = k.revision()
	if p := k.problems(); p != rows.ProblemsDocument {
		rows.ProblemsDocument, rows.Problems = p, problemsOf(p)
	}
	rows.steps = next(rows.steps, step{rows.Generation, changes})
	k.rows = &rows
	return k.rows
}

// take puts each document where it belongs, and returns what changed of those without a row.
func (k *Keeper) take(r *model.Report) (changes []Change) {
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
			changes = append(changes, changeOf(path, doc))
		}
	}
	if met < len(k.others) {
		maps.DeleteFunc(k.others, func(path string, doc *model.Document) bool {
			gone := r.Documents[path] == nil
			if gone {
				c := changeOf(path, doc)
				c.Gone = true
				changes = append(changes, c)
			}
			return gone
		})
	}
	return changes
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

func (k *Keeper) problems() *report.Problems {
	if doc := k.others[model.ReportProblems]; doc != nil {
		p, _ := doc.Object.(*report.Problems)
		return p
	}
	return nil
}

package query

import (
	"cmp"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// Change is that an object is another than it was, or that something of the fleet as a whole
// is.
type Change struct {
	Kind  string `json:"kind"`            // as in Kinds
	Name  string `json:"name,omitempty"`  // empty for what there is one of
	State string `json:"state,omitempty"` // that it has now; of the revision, which it is
	Gone  bool   `json:"gone,omitempty"`  // it is not there any more
}

// The kinds of what changes. Those of claims are theirs.
const (
	kindServer        = "server"
	kindBMC           = "bmc"
	kindEndpoint      = "endpoint"
	kindMaintenance   = "maintenance"
	kindReadinessRule = "readiness-rule"
	kindRevision      = "revision"
	kindProblems      = "problems"
)

// Kinds are the kinds of what changes.
var Kinds = []string{
	kindServer, kindClaim, kindBootConfiguration, kindBMC, kindEndpoint, kindMaintenance, kindReadinessRule, kindRevision, kindProblems,
}

// changeOf is the change of a document without a row.
func changeOf(path string, doc *model.Document) Change {
	switch d := doc.Object.(type) {
	case *report.Revision:
		return Change{Kind: kindRevision, State: string(d.Applied)}
	case *report.Document:
		kind := kindMaintenance
		if strings.HasPrefix(path, "serverreadinessrules/") {
			kind = kindReadinessRule
		}
		return Change{Kind: kind, Name: d.Metadata.Name}
	}
	return Change{Kind: kindProblems}
}

// step is what changed from one generation to the next.
type step struct {
	to      uint64
	changes []Change
}

// Limits of what is remembered of changes. Who has seen less than that looks at all anew.
const (
	maxSteps   = 256
	maxChanges = 2000
)

// next remembers one step more. The steps before it stay as they are, for others have them.
func next(steps []step, s step) []step {
	all := append(slices.Clone(steps), s)
	count, from := 0, len(all)
	for from > 0 && len(all)-from < maxSteps {
		if count += len(all[from-1].changes); count > maxChanges {
			break
		}
		from--
	}
	return slices.Clip(all[from:])
}

// Since returns what changed since a generation, each object once, in the order of kinds and
// names; false if that is not known any more, or was too much.
func (r *Rows) Since(generation uint64) ([]Change, bool) {
	if generation > r.Generation {
		return nil, false
	}
	from := len(r.steps)
	for from > 0 && r.steps[from-1].to > generation {
		from--
	}
	known := r.Generation - uint64(len(r.steps)) // the oldest that steps lead on from
	if generation < known {
		return nil, false
	}
	type object struct{ kind, name string }
	newest := make(map[object]Change)
	for _, s := range r.steps[from:] {
		for _, c := range s.changes {
			newest[object{c.Kind, c.Name}] = c
		}
	}
	changes := make([]Change, 0, len(newest))
	for _, c := range newest {
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), text.CompareNatural(a.Name, b.Name))
	})
	return changes, true
}

package preview

import "cmp"

// severity orders the verdicts.
var severity = map[Verdict]int{Nothing: 0, Changes: 1, Destructive: 2, Wrong: 3}

// Compare is positive if the effects are worse than those of another preview, negative if they are better,
// and 0 if neither is.
func (p *Preview) Compare(other *Preview) int {
	return cmp.Or(
		cmp.Compare(severity[p.Verdict], severity[other.Verdict]),
		cmp.Compare(p.destructive(), other.destructive()),
		cmp.Compare(len(p.Effects), len(other.Effects)),
	)
}

func (p *Preview) destructive() int {
	n := 0
	for i := range p.Effects {
		if p.Effects[i].Destructive {
			n++
		}
	}
	return n
}

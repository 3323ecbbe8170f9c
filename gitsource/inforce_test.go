package gitsource

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"ingot/model"
)

// What replaces objects in force has the new ones, and leaves those before as they were.
func TestObjectsInForceAreReplaced(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // a test is to be repeatable
	some := func() model.Identity {
		return model.Identity{Kind: model.KindServerClaim, Namespace: "default", Name: fmt.Sprint(r.IntN(600))}
	}
	before, want := new(objectsInForce), make(map[model.Identity]located)
	for round := range 200 {
		gone, then := make(map[model.Identity]bool), maps.Clone(want)
		for range r.IntN(20) {
			gone[some()] = true
		}
		maps.DeleteFunc(then, func(id model.Identity, _ located) bool { return gone[id] })
		after := before.without(gone)
		for range r.IntN(20) {
			id := some()
			then[id] = located{path: fmt.Sprint(round)}
			after.set(id, then[id])
		}
		for what, of := range map[string]struct {
			objects *objectsInForce
			want    map[model.Identity]located
		}{"before": {before, want}, "after": {after, then}} {
			if got := maps.Collect(of.objects.all()); !maps.Equal(got, of.want) || of.objects.len() != len(of.want) {
				t.Fatalf("round %d, %s: %d objects that are %v, want %v", round, what, of.objects.len(), got, of.want)
			}
		}
		before, want = after, then
	}
}

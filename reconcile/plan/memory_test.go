package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// TestAPlanWithAMemoryIsThatWithoutOne: whatever became of the fleet and of Git since.
func TestAPlanWithAMemoryIsThatWithoutOne(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test is to be repeatable
		in := waiting(bigFleet(12, 4), 6, func(i int, c *model.ServerClaim) {
			if r.IntN(4) > 0 {
				c.Spec.ServerSelector = requires([]string{"none", "rack", "slot"}[r.IntN(3)], fmt.Sprint(r.IntN(3)))
			}
		})
		memory := &Memory{}
		for range 12 {
			next := *in
			o := *in.Observed
			o.Servers = maps.Clone(o.Servers)
			next.Observed = &o
			for name, rec := range o.Servers {
				if r.IntN(6) == 0 {
					changed := *rec
					changed.State = model.ServerStates[r.IntN(len(model.ServerStates))]
					o.Servers[name] = &changed
				}
			}
			if r.IntN(2) == 0 {
				d := *in.Desired
				d.Claims = maps.Clone(d.Claims)
				next.Desired = &d
				for name, c := range next.Desired.Claims {
					switch r.IntN(5) {
					case 0:
						delete(next.Desired.Claims, name)
					case 1:
						changed := *c
						changed.Spec.ServerSelector = requires("slot", fmt.Sprint(r.IntN(3)))
						next.Desired.Claims[name] = &changed
					}
				}
			}
			in = &next
			want := Plan(in)
			remembering := *in
			remembering.Memory = memory
			if diff := cmp.Diff(want, Plan(&remembering), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("seed %d (-without +with a memory):\n%s", seed, diff)
			}
		}
	}
}

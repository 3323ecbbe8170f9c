package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func someObject(r *rand.Rand) Object {
	i, at := r.IntN(4), 0
	if at = i; r.IntN(12) == 0 {
		at = r.IntN(4)
	}
	name := func(prefix string) Meta {
		return Meta{Name: fmt.Sprint(prefix, i), Source: fmt.Sprintf("%s%d.yaml:1", prefix, i)}
	}
	to := func(m *Meta, kind Kind, namespace, name string) {
		m.References = append(m.References, Reference{To: Identity{kind, namespace, name}, Field: "spec.ref"})
	}
	ip := fmt.Sprint("10.0.0.", at)
	switch r.IntN(9) {
	case 0:
		return &Endpoint{Meta: name("e"), Spec: EndpointSpec{MACAddress: fmt.Sprint("aa:bb:cc:00:00:0", at), IP: ip}}
	case 1:
		b := &BMC{Meta: name("b"), Spec: BMCSpec{Access: &InlineEndpoint{IP: ip}, Protocol: Protocol{Name: "Redfish", Port: 443}}}
		if r.IntN(2) == 0 {
			b.Spec.Access, b.Spec.EndpointRef = nil, &LocalRef{fmt.Sprint("e", i)}
			to(&b.Meta, KindEndpoint, "", fmt.Sprint("e", i))
		}
		if r.IntN(6) == 0 {
			b.Name = fmt.Sprint("s", i)
		}
		return b
	case 2:
		return &BMCSecret{Meta: name("x")}
	case 3:
		s := &Server{Meta: name("s"), Spec: ServerSpec{SystemUUID: fmt.Sprintf("0000000%d-0000-4000-8000-000000000000", at)}}
		if r.IntN(3) == 0 {
			s.Spec.BMC = &BMCAccess{Address: fmt.Sprint("10.0.1.", at), Protocol: Protocol{Port: 443}}
		} else if r.IntN(3) == 0 { // one that another server describes, perhaps
			to(&s.Meta, KindBMC, "", fmt.Sprint("s", r.IntN(4)))
		}
		if r.IntN(3) == 0 {
			s.Annotations = map[string]string{AnnotationMACAddresses: fmt.Sprint("00:1a:2b:00:00:0", at)}
		}
		if r.IntN(3) == 0 {
			s.Spec.BootConfigurationRef = &ObjectRef{Namespace: "default", Name: fmt.Sprint("c", i)}
			to(&s.Meta, KindServerBootConfiguration, "default", fmt.Sprint("c", i))
		}
		return s
	case 4, 5:
		c := &ServerClaim{Meta: name("c")}
		c.Namespace = "default"
		if r.IntN(2) == 0 {
			to(&c.Meta, KindSecret, "default", fmt.Sprint("k", i))
		}
		if r.IntN(40) == 0 {
			c.Name = fmt.Sprint("C", i)
		}
		return c
	case 6:
		c := &ServerBootConfiguration{Meta: name("c"), Spec: ServerBootConfigurationSpec{ServerRef: LocalRef{fmt.Sprint("s", at)}}}
		c.Namespace = "default"
		if r.IntN(6) == 0 {
			c.Annotations = map[string]string{AnnotationType: typeInternal}
		}
		return c
	case 7:
		return &ServerMaintenance{Meta: name("m")}
	default:
		k := &Secret{Meta: name("k")}
		k.Namespace = "default"
		return k
	}
}

func desiredOf(objects map[Identity]Object) *Desired {
	d := NewDesired()
	for _, o := range objects {
		d.Add(o)
	}
	return d
}

func randomChanges(r *rand.Rand, objects map[Identity]Object) []Change {
	before := make(map[Identity]Object)
	for range 1 + r.IntN(3) {
		o := someObject(r)
		id := o.Identity()
		if _, again := before[id]; again {
			continue
		}
		before[id] = objects[id]
		if objects[id] = o; before[id] != nil && r.IntN(3) == 0 {
			delete(objects, id)
		}
	}
	var changes []Change
	for id, o := range before {
		changes = append(changes, Change{Before: o, After: objects[id]})
	}
	return changes
}

func TestWhatChangesMakeOfADesiredIsWhatItsObjectsMake(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		objects := make(map[Identity]Object)
		d := NewDesired()
		for range 60 {
			was := d.Clone()
			next := d.With(randomChanges(r, objects))
			if want := desiredOf(objects); !reflect.DeepEqual(want, next) {
				t.Fatalf("seed %d (-objects +changed):\n%s", seed, cmp.Diff(want, next))
			}
			if !reflect.DeepEqual(was, d) {
				t.Fatalf("seed %d: what was changed became another (-was +is):\n%s", seed, cmp.Diff(was, d))
			}
			d = next
		}
	}
}

func TestWhatStillFitsHasNothingWrong(t *testing.T) {
	checks := map[string]struct {
		all   func(*Desired) []Problem
		still func(*Desired, []Change) bool
	}{
		"all in Git":             {CrossChecker{}.Check, CrossChecker{}.StillFits},
		"secrets elsewhere, too": {CrossChecker{SecretsElsewhere: true}.Check, CrossChecker{SecretsElsewhere: true}.StillFits},
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			fit := 0
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 1))
				objects := make(map[Identity]Object)
				d := NewDesired()
				for range 60 {
					undo := maps.Clone(objects)
					changes := randomChanges(r, objects)
					next := d.With(changes)
					wrong := check.all(next)
					if check.still(next, changes) {
						if fit++; len(wrong) > 0 {
							t.Fatalf("seed %d: it is said to fit, but %v", seed, wrong)
						}
					}
					if len(wrong) > 0 {
						objects = undo
						continue
					}
					d = next
				}
			}
			if fit < 300 {
				t.Errorf("%d changes were found to fit, want more for them to tell", fit)
			}
		})
	}
}

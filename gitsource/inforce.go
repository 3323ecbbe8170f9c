package gitsource

import (
	"hash/maphash"
	"iter"
	"maps"

	"ingot/model"
)

// objectParts is in how many parts objects in force are kept. Of 100,000 each has 400.
const objectParts = 256

// objectSeed is what parts are chosen by.
var objectSeed = maphash.MakeSeed()

// objectsInForce are objects by their identity, in parts: a copy in which a few of very many differ
// shares all other parts. There are none in nil.
type objectsInForce struct {
	parts [objectParts]map[model.Identity]located // nil where there is none
	own   [objectParts]bool                       // the parts that no other copy has
	count int
}

func partOf(id model.Identity) int {
	return int(maphash.Comparable(objectSeed, id) % objectParts)
}

// get returns an object, and whether it is there.
func (o *objectsInForce) get(id model.Identity) (located, bool) {
	if o == nil {
		return located{}, false
	}
	p, inForce := o.parts[partOf(id)][id]
	return p, inForce
}

// of returns an object, the zero one if it is not there.
func (o *objectsInForce) of(id model.Identity) located {
	p, _ := o.get(id)
	return p
}

func (o *objectsInForce) len() int {
	if o == nil {
		return 0
	}
	return o.count
}

// all returns the objects in no order.
func (o *objectsInForce) all() iter.Seq2[model.Identity, located] {
	return func(yield func(model.Identity, located) bool) {
		if o == nil {
			return
		}
		for i := range o.parts {
			for id, p := range o.parts[i] {
				if !yield(id, p) {
					return
				}
			}
		}
	}
}

// without returns a copy without some objects, which may be changed until it is in force.
func (o *objectsInForce) without(ids map[model.Identity]bool) *objectsInForce {
	next := *o
	next.own = [objectParts]bool{}
	for id := range ids {
		next.drop(id)
	}
	return &next
}

// part returns the part of an object, to be changed.
func (o *objectsInForce) part(id model.Identity) map[model.Identity]located {
	n := partOf(id)
	if !o.own[n] {
		o.own[n] = true
		o.parts[n] = maps.Clone(o.parts[n])
	}
	if o.parts[n] == nil {
		o.parts[n] = make(map[model.Identity]located)
	}
	return o.parts[n]
}

// set puts an object in, or into the place of one.
func (o *objectsInForce) set(id model.Identity, p located) {
	part := o.part(id)
	before := len(part)
	part[id] = p
	o.count += len(part) - before
}

// drop takes an object out.
func (o *objectsInForce) drop(id model.Identity) {
	if _, inForce := o.get(id); inForce {
		delete(o.part(id), id)
		o.count--
	}
}

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

// objectsInForce are objects by their identity, in parts: what replaces a few of very many
// shares the parts that these are not in. There are none in nil.
type objectsInForce struct {
	parts [objectParts]map[model.Identity]located // nil where there is none
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

// set puts an object in, or into the place of one. It is for objects that are being put
// together: from then on they are not changed, for others may share their parts.
func (o *objectsInForce) set(id model.Identity, p located) {
	part := &o.parts[partOf(id)]
	if *part == nil {
		*part = make(map[model.Identity]located)
	}
	before := len(*part)
	(*part)[id] = p
	o.count += len(*part) - before
}

// drop takes an object out, as set puts one in.
func (o *objectsInForce) drop(id model.Identity) {
	part := &o.parts[partOf(id)]
	before := len(*part)
	delete(*part, id)
	o.count -= before - len(*part)
	if len(*part) == 0 {
		*part = nil
	}
}

// replacing returns the objects with those of now in the place of those of was.
func (o *objectsInForce) replacing(was, now *objectsInForce) *objectsInForce {
	next := *o
	for i := range next.parts {
		if len(was.parts[i])+len(now.parts[i]) > 0 {
			next.parts[i] = maps.Clone(o.parts[i])
		}
	}
	for id := range was.all() {
		next.drop(id)
	}
	for id, p := range now.all() {
		next.set(id, p)
	}
	return &next
}

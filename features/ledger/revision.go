package ledger

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// Revision is one head of the watched branch.
type Revision struct {
	At     time.Time
	Commit string
	// Descends is set when the revision before is an ancestor of it, in the same folder
	// of the same branch of the same repository.
	Descends bool
	// Approves is set when a commit that came with it approves something.
	Approves bool
	// Files are the manifests, by path.
	Files map[string]File
}

// File is one manifest.
type File struct {
	Objects []model.Object
	// Text is the content of a file that is faulty, "" of one that is not.
	Text string
	// Named are objects of a faulty file that cannot be used and whose name is known.
	Named []model.Identity
}

// placed is an object and the file that it stands in.
type placed struct {
	model.Object
	path string
	text string // its content, to be compared
}

func place(o model.Object, path string) placed {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it was made of a manifest
	}
	if s, ok := o.(*model.Secret); ok {
		for _, key := range slices.Sorted(maps.Keys(s.Values)) {
			text = append(text, "\n"+key+"="+s.Values[key].Reveal()...)
		}
	}
	return placed{Object: o, path: path, text: string(text)}
}

// index returns the objects of a revision. Of an object that stands in two files none
// counts: the revision says two things of it.
func (r Revision) index() (objects map[model.Identity]placed, twice map[model.Identity]bool) {
	objects, twice = make(map[model.Identity]placed), make(map[model.Identity]bool)
	for path, f := range r.Files {
		for _, o := range f.Objects {
			id := o.Identity()
			_, twice[id] = objects[id]
			objects[id] = place(o, path)
		}
	}
	for id, is := range twice {
		if is {
			delete(objects, id)
			continue
		}
		delete(twice, id)
	}
	return objects, twice
}

// force is what Git asks for, by the rule that a removal is a commit: an object stays
// in force until a commit that descends takes it away.
type force struct {
	objects map[model.Identity]placed
	head    map[model.Identity]placed // of the newest head, whether in force or not
	// hidden are objects that a faulty file may hold.
	hidden map[model.Identity]bool
	// dropped are objects that a rewritten history lacks or changed.
	dropped map[model.Identity]bool
	begun   bool
}

func newForce() *force {
	return &force{
		objects: make(map[model.Identity]placed), head: make(map[model.Identity]placed),
		hidden: make(map[model.Identity]bool), dropped: make(map[model.Identity]bool),
	}
}

// change is one object that a commit changed; Old or New is nil where there is none.
type change struct{ Old, New model.Object }

func (f *force) take(r Revision) []change {
	if len(r.Files) == 0 && f.begun {
		return nil // an emptied tree deletes nothing
	}
	objects, twice := r.index()
	var changes []change
	if r.Descends || !f.begun {
		changes = f.descend(r, objects, twice)
	}
	if r.Approves {
		changes = append(changes, f.approve(objects)...)
	}
	if !r.Descends && f.begun {
		changes = append(changes, f.rewrite(r, objects, twice)...)
	}
	f.head, f.begun = objects, true
	return changes
}

// descend takes over what a descendant changed.
func (f *force) descend(r Revision, objects map[model.Identity]placed, twice map[model.Identity]bool) (changes []change) {
	for _, id := range sorted(f.objects) {
		_, was := f.head[id]
		_, is := objects[id]
		switch {
		case is || !was && !f.hidden[id]: // or dropped before
		case twice[id] || r.mayHold(f.objects[id]):
			f.hidden[id] = true
		default:
			changes = append(changes, change{Old: f.objects[id].Object})
			delete(f.objects, id)
			delete(f.hidden, id)
		}
	}
	for _, id := range sorted(objects) {
		before, was := f.head[id]
		if was && before.text == objects[id].text && !f.hidden[id] {
			if kept, in := f.objects[id]; in {
				kept.path = objects[id].path
				f.objects[id] = kept
			}
			continue
		}
		changes = append(changes, f.put(objects[id])...)
	}
	return changes
}

// rewrite takes over what a revision that does not descend may bring: what it lacks
// stays, and what it says of servers and claims in force does not count.
func (f *force) rewrite(r Revision, objects map[model.Identity]placed, twice map[model.Identity]bool) (changes []change) {
	for id := range f.objects {
		_, is := objects[id]
		switch {
		case is || twice[id]:
		case r.mayHold(f.objects[id]):
			f.hidden[id] = true // and a commit may take that away
		default:
			f.dropped[id] = true
		}
	}
	for _, id := range sorted(objects) {
		now, in := f.objects[id]
		held := id.Kind == model.KindServer || id.Kind == model.KindServerMaintenance || id.Kind == model.KindServerClaim && in
		switch {
		case in && now.text == objects[id].text:
		case held:
			f.dropped[id] = true
		default:
			changes = append(changes, f.put(objects[id])...)
		}
	}
	return changes
}

// approve takes Git's word for what was dropped before this revision.
func (f *force) approve(objects map[model.Identity]placed) (changes []change) {
	for _, id := range sorted(f.dropped) {
		if o, is := objects[id]; is {
			changes = append(changes, f.put(o)...)
			continue
		}
		if old, in := f.objects[id]; in {
			changes = append(changes, change{Old: old.Object})
		}
		delete(f.objects, id)
		delete(f.dropped, id)
	}
	return changes
}

// put brings an object into force.
func (f *force) put(o placed) []change {
	id := o.Identity()
	old, in := f.objects[id]
	f.objects[id] = o
	delete(f.dropped, id)
	delete(f.hidden, id)
	switch {
	case in && old.text == o.text:
		return nil
	case in:
		return []change{{Old: old.Object, New: o.Object}}
	}
	return []change{{New: o.Object}}
}

// mayHold reports whether a faulty file of the revision may hold an object: the one
// that it stood in, or another that speaks of it.
func (r Revision) mayHold(o placed) bool {
	for path, f := range r.Files {
		if f.Text == "" {
			continue
		}
		id := o.Identity()
		if path == o.path || slices.Contains(f.Named, id) || strings.Contains(f.Text, "kind:") && strings.Contains(f.Text, id.Name) {
			return true
		}
	}
	return false
}

// renames pairs claims that are gone with claims that are new and the same but for
// their name. Where more than one may be meant none is.
func renames(changes []change, secret func(*model.ServerClaim) string) map[model.ClaimName]model.ClaimName {
	var gone, come, was, is []*model.ServerClaim
	for _, c := range changes {
		if old, ok := c.Old.(*model.ServerClaim); ok {
			was = append(was, old)
			if c.New == nil {
				gone = append(gone, old)
			}
		}
		if new, ok := c.New.(*model.ServerClaim); ok {
			is = append(is, new)
			if c.Old == nil {
				come = append(come, new)
			}
		}
	}
	pairs := paired(gone, come, secret)
	chains := paired(was, is, secret)
	for _, c := range gone { // perhaps to a name that another claim gave up with the same commit
		from := c.ClaimName()
		if _, known := pairs[from]; known {
			continue
		}
		end := from
		for to, ok := chains[end]; ok; to, ok = chains[end] {
			end = to
		}
		if slices.ContainsFunc(come, func(c *model.ServerClaim) bool { return c.ClaimName() == end }) {
			for from != end {
				pairs[from], from = chains[from], chains[from]
			}
		}
	}
	return pairs
}

// paired are the claims that are the same except for their name, each if it can be no other.
func paired(olds, news []*model.ServerClaim, secret func(*model.ServerClaim) string) map[model.ClaimName]model.ClaimName {
	pairs := make(map[model.ClaimName]model.ClaimName)
	for _, old := range olds {
		same := matching(news, old, secret)
		if len(same) == 1 && same[0].ClaimName() != old.ClaimName() && len(matching(olds, same[0], secret)) == 1 {
			pairs[old.ClaimName()] = same[0].ClaimName()
		}
	}
	return pairs
}

// matching are those claims that are the same as c but for their name.
func matching(all []*model.ServerClaim, c *model.ServerClaim, secret func(*model.ServerClaim) string) []*model.ServerClaim {
	var found []*model.ServerClaim
	for _, o := range all {
		a, b := o.Spec, c.Spec
		a.IgnitionSecretRef, b.IgnitionSecretRef, a.UserDataRef, b.UserDataRef = nil, nil, nil, nil
		if o.Namespace == c.Namespace && reflect.DeepEqual(a, b) && maps.Equal(o.Annotations, c.Annotations) &&
			maps.Equal(o.Labels, c.Labels) && secret(o) == secret(c) {
			found = append(found, o)
		}
	}
	return found
}

func sorted[V any](m map[model.Identity]V) []model.Identity {
	return slices.SortedFunc(maps.Keys(m), func(a, b model.Identity) int { return strings.Compare(a.String(), b.String()) })
}

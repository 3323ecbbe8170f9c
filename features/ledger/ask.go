package ledger

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// askKind is what a commit asked for.
type askKind string

const (
	askRelease     askKind = "release"
	askReprovision askKind = "reprovision"
	askOperation   askKind = "operation"
	askDiscover    askKind = "discover"
	askServer      askKind = "change of the server's manifest"
)

// ask is one request that a commit made. It is used up by what it asked for.
type ask struct {
	at    time.Time
	kind  askKind
	name  string // of the claim or the server
	value string // of the annotation
	used  bool
	// until is when it was withdrawn, and had to be carried out by; zero = it was not.
	until time.Time
}

// open reports whether the request may be carried out at a time.
func (a *ask) open(at time.Time) bool {
	return !a.used && !a.at.After(at) && (a.until.IsZero() || !a.until.Before(at))
}

// asks are all requests, oldest first.
type asks []*ask

// find returns the oldest open request of a kind that names name, or nil.
func (all asks) find(at time.Time, kind askKind, name string) *ask {
	i := slices.IndexFunc(all, func(a *ask) bool { return a.kind == kind && a.name == name && a.open(at) })
	if i < 0 {
		return nil
	}
	return all[i]
}

// withdraw ends the requests of a kind that name name: what was decided upon may still
// be carried out until then.
func (all asks) withdraw(kind askKind, name string, until time.Time) {
	for _, a := range all {
		if a.kind == kind && a.name == name && a.until.IsZero() {
			a.until = until
		}
	}
}

// rename has requests of a kind that are open name claims by their new names.
func (all asks) rename(kind askKind, names map[model.ClaimName]model.ClaimName) {
	for _, a := range all {
		if now, renamed := names[model.ClaimName(a.name)]; renamed && a.kind == kind && !a.used {
			a.name = string(now)
		}
	}
}

func requests(c change, at time.Time) (made asks) {
	add := func(kind askKind, name, value string) {
		made = append(made, &ask{at: at, kind: kind, name: name, value: value})
	}
	switch o := c.either().(type) {
	case *model.ServerClaim:
		old, _ := c.Old.(*model.ServerClaim)
		now, _ := c.New.(*model.ServerClaim)
		name := string(o.ClaimName())
		switch {
		case now == nil, old != nil && !sameServers(old, now):
			add(askRelease, name, "")
		}
		if v := renewed(old, now, model.AnnotationReprovision); v != "" && old != nil {
			add(askReprovision, name, v)
		}
	case *model.Server:
		old, _ := c.Old.(*model.Server)
		now, _ := c.New.(*model.Server)
		if now == nil {
			return nil
		}
		add(askServer, now.Name, "")
		if v := renewed(old, now, model.AnnotationOperation); v != "" {
			add(askOperation, now.Name, v)
		}
		if v := renewed(old, now, model.AnnotationDiscover); v != "" {
			add(askDiscover, now.Name, v)
		}
	}
	return made
}

// sameServers reports whether two claims ask for the same servers.
func sameServers(a, b *model.ServerClaim) bool {
	return reflect.DeepEqual(a.Spec.ServerRef, b.Spec.ServerRef) && reflect.DeepEqual(a.Spec.ServerSelector, b.Spec.ServerSelector)
}

func (c change) either() model.Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// renewed is the value of an annotation if it is another than before.
func renewed[O interface {
	comparable
	model.Object
}](old, now O, key string) string {
	var none O
	if now == none {
		return ""
	}
	value := now.Metadata().Annotations[key]
	if old != none && old.Metadata().Annotations[key] == value {
		return ""
	}
	return value
}

// operation is the name of an operation without what makes its value new.
func operation(value string) string {
	name, _, _ := strings.Cut(value, "#")
	return name
}

package model

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
)

// ValidateUpdate checks that a new version of an object changes nothing that may
// not change once it is set. Objects of different identity do not follow each
// other, so nothing is wrong between them.
func ValidateUpdate(old, new Object) []Problem {
	if old == nil || new == nil || old.Identity() != new.Identity() {
		return nil
	}
	u := update{object: new}
	switch new := new.(type) {
	case *BMC:
		u.bmc(&old.(*BMC).Spec, &new.Spec)
	case *ServerClaim:
		u.claim(&old.(*ServerClaim).Spec, &new.Spec)
	case *ServerBootConfiguration:
		if old.(*ServerBootConfiguration).Spec.ServerRef != new.Spec.ServerRef {
			u.deny("spec.serverRef", "must not change: make a ServerBootConfiguration of another name, and remove this one to release its server")
		}
	case *BMCSecret:
		was := old.(*BMCSecret)
		u.secret(was.Immutable, new.Immutable, was.Values, new.Values)
	case *Secret:
		was := old.(*Secret)
		u.secret(was.Immutable, new.Immutable, was.Values, new.Values)
	}
	return u.problems
}

// update is the comparison of two versions of an object.
type update struct {
	object   Object
	problems []Problem
}

func (u *update) deny(field, message string) {
	u.problems = append(u.problems, problemOf(u.object, field, message))
}

func (u *update) bmc(old, new *BMCSpec) {
	switch {
	case old.EndpointRef == nil || new.EndpointRef == nil && new.Access != nil:
	case new.EndpointRef == nil:
		u.deny("spec.endpointRef", "must not be removed, except for access in its stead")
	case *old.EndpointRef != *new.EndpointRef:
		u.deny("spec.endpointRef", "was "+show(old.EndpointRef.Name)+" and must not change: "+
			"give the BMC another name, or access instead of endpointRef")
	}
}

func (u *update) claim(old, new *ServerClaimSpec) {
	const remedy = "must not change once it is set: make a claim of another name, and remove this one to release its server"
	if old.ServerRef != nil && !reflect.DeepEqual(old.ServerRef, new.ServerRef) {
		u.deny("spec.serverRef", remedy)
	}
	if old.ServerSelector != nil && !reflect.DeepEqual(old.ServerSelector, new.ServerSelector) {
		u.deny("spec.serverSelector", remedy)
	}
}

func (u *update) secret(was, is *bool, old, new map[string]Sensitive) {
	if was == nil || !*was {
		return
	}
	if is == nil || !*is {
		u.deny("immutable", "must not be taken back: make an object of another name")
	}
	if !maps.Equal(old, new) {
		u.deny("data", "must not change, for the object is immutable: make one of another name")
	}
}

// problemOf is an error in an object of which no more than Meta.Source is known.
func problemOf(o Object, field, message string) Problem {
	p := Problem{Severity: SeverityError, Object: o.Identity().String(), Field: field, Message: message}
	p.File, p.Line = sourceOf(o)
	return p
}

func sourceOf(o Object) (file string, line int) {
	source := o.Metadata().Source
	colon := strings.LastIndexByte(source, ':')
	if colon < 0 {
		return source, 0
	}
	line, err := strconv.Atoi(source[colon+1:])
	if err != nil {
		return source, 0
	}
	return source[:colon], line
}

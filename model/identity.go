package model

import "strings"

// ParseIdentity is the inverse of Identity.String. It reads Problem.Object,
// which for a document of a foreign kind may be the kind alone.
func ParseIdentity(s string) (Identity, bool) {
	kind, name, _ := strings.Cut(s, " ")
	if kind == "" {
		return Identity{}, false
	}
	id := Identity{Kind: Kind(kind), Name: name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		id.Namespace, id.Name = namespace, rest
	}
	return id, true
}

package model

import (
	"testing"
)

func TestParseIdentityIsTheInverseOfString(t *testing.T) {
	for _, id := range []Identity{
		{Kind: KindServer, Name: "s1"},
		{Kind: KindServerClaim, Namespace: "a", Name: "web"},
		{Kind: "Kustomization"},
	} {
		text := id.String()
		if id.Name == "" {
			text = string(id.Kind)
		}
		if got, ok := ParseIdentity(text); !ok || got != id {
			t.Errorf("%q: got %+v, %v", text, got, ok)
		}
	}
	if _, ok := ParseIdentity(""); ok {
		t.Error("an empty text is no identity")
	}
}

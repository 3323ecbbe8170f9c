package gitsource

import (
	"reflect"
	"testing"

	"ingot/model"
)

// TestWhereAnObjectStandsIsNotWhatItSays: one that was only moved, within its file or to
// another, is the same and may be renamed.
func TestWhereAnObjectStandsIsNotWhatItSays(t *testing.T) {
	t.Parallel()
	read := func(file, before string) *model.ServerClaim {
		t.Helper()
		objects, problems := model.Decode(file, []byte(before+"apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\n"+
			"metadata: {name: web}\nspec: {power: \"On\", image: os, serverRef: {name: s1}}\n"), model.DecodeOptions{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return objects[0].(*model.ServerClaim)
	}
	a, b := read("a.yaml", ""), read("b.yaml", "# a comment\n\n")
	if len(a.References) != 1 || reflect.DeepEqual(a.References, b.References) {
		t.Fatalf("references %v and %v, want one each, at different places", a.References, b.References)
	}
	if !sameContent(a, b) {
		t.Error("they do not say the same")
	}
	if !reflect.DeepEqual(nameless(a), nameless(b)) {
		t.Error("they are not the same but for their names")
	}
}

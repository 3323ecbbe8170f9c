package gitsource

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"ingot/model"
)

func decodedBy(r *reader, file, content string) model.Object {
	return r.parse(file, []byte(content)).objects[0]
}

func realReader() *reader {
	opts := withModel(Options{AllowPlaintextSecrets: true}, nil)
	return &reader{decode: opts.Decode, count: func() {}}
}

func TestEqualPartsOfObjectsAreOne(t *testing.T) {
	t.Parallel()
	r := realReader()
	manifest := func(name, zone string) string {
		return realHead + "ServerClaim\nmetadata: {name: " + name + ", labels: {app: web}, annotations: {ingot/priority: \"1\"}}\nspec:\n  power: \"On\"\n" +
			"  image: example.com/os:1\n  ignitionSecretRef: {name: key}\n  serverSelector: {matchLabels: {zone: " + zone + "}}\n" +
			"  tolerations: [{key: a, operator: Exists}]\n"
	}
	a := decodedBy(r, "a.yaml", manifest("a", "x")).(*model.ServerClaim)
	b := decodedBy(r, "b.yaml", manifest("b", "x")).(*model.ServerClaim)
	c := decodedBy(r, "c.yaml", manifest("c", "y")).(*model.ServerClaim)
	one := func(x, y any) bool { return reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer() }
	if !one(a.Labels, b.Labels) || !one(a.Annotations, b.Annotations) || !one(a.References, b.References) || !one(a.Spec.IgnitionSecretRef, b.Spec.IgnitionSecretRef) ||
		!one(a.Spec.ServerSelector, b.Spec.ServerSelector) || !one(a.Spec.Tolerations, b.Spec.Tolerations) {
		t.Error("a part of two claims that say the same is kept twice")
	}
	if one(a.Spec.ServerSelector, c.Spec.ServerSelector) || c.Spec.ServerSelector.MatchLabels["zone"] != "y" || a.Spec.ServerSelector.MatchLabels["zone"] != "x" {
		t.Errorf("selectors are %v and %v", a.Spec.ServerSelector, c.Spec.ServerSelector)
	}
}

// JSON does not tell an empty list from none, and shows each secret value alike.
func TestPartsThatOnlyLookEqualStayApart(t *testing.T) {
	t.Parallel()
	r := realReader()
	bare := realHead + "ServerClaim\nmetadata: {name: a}\nspec:\n  power: \"On\"\n  image: example.com/os:1\n  serverSelector: "
	some, none := decodedBy(r, "a.yaml", bare+"{matchExpressions: []}\n").(*model.ServerClaim), decodedBy(r, "a.yaml", bare+"{}\n").(*model.ServerClaim)
	if (some.Spec.ServerSelector.MatchExpressions == nil) == (none.Spec.ServerSelector.MatchExpressions == nil) {
		t.Errorf("selectors are %#v and %#v", some.Spec.ServerSelector, none.Spec.ServerSelector)
	}
	secret := func(value string) map[string]model.Sensitive {
		return decodedBy(r, "s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: "+value+"}\n").(*model.Secret).Values
	}
	if x, y := secret("one"), secret("two"); x["k"].Reveal() != "one" || y["k"].Reveal() != "two" {
		t.Error("a secret has another one's value")
	}
	for key := range r.parts.parts {
		if key.kind == reflect.TypeFor[map[string]model.Sensitive]() {
			t.Error("secret values are interned")
		}
	}
}

func TestWhatIsInternedIsBounded(t *testing.T) {
	t.Parallel()
	var n interner
	for i := range maxInterned + 10 {
		n.object(&model.ServerMaintenance{Meta: model.Meta{Labels: map[string]string{"a": fmt.Sprint(i)}}})
	}
	if len(n.parts) > maxInterned {
		t.Errorf("%d parts are known, at most %d are to be", len(n.parts), maxInterned)
	}
	large := &model.ServerMaintenance{Meta: model.Meta{Annotations: map[string]string{"a": string(make([]byte, maxInternedBytes))}}}
	before := len(n.parts)
	if n.object(large); len(n.parts) != before {
		t.Error("a large part is known")
	}
}

// What there is one of for each object in force is small.
func TestAnObjectInForceTakesLittle(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(located{}); size > 72 {
		t.Errorf("one takes %d bytes", size)
	}
}

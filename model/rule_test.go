package model

import (
	"slices"
	"testing"
)

func TestProblemsHaveARule(t *testing.T) {
	const claim = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\n"
	const right = "spec: {power: \"On\", image: os}\n"
	tests := map[string]struct {
		manifest string
		want     []Rule
	}{
		"a line that is no YAML":            {claim + "metadata: {name: web\n", []Rule{RuleSyntax}},
		"an alias":                          {claim + "metadata: &m {name: web}\nspec: *m\n", []Rule{RuleSyntax}},
		"a kind that is not read":           {"apiVersion: v1\nkind: Pod\n", []Rule{RuleUnknownKind}},
		"a version that is not read":        {"apiVersion: v2\nkind: Secret\n", []Rule{RuleUnknownKind}},
		"no kind":                           {"apiVersion: v1\n", []Rule{RuleRequired}},
		"no name and no image":              {claim + "spec: {power: \"On\"}\n", []Rule{RuleRequired, RuleRequired}},
		"a field that is not known":         {claim + "metadata: {name: web}\nspec: {powr: x, image: os}\n", []Rule{RuleUnknownField}},
		"a field that is given twice":       {claim + "metadata: {name: web, name: db}\n" + right, []Rule{RuleRepeated}},
		"a number in the place of text":     {claim + "metadata: {name: web}\nspec: {power: \"On\", image: 7}\n", []Rule{RuleType}},
		"a value that a field cannot have":  {claim + "metadata: {name: web}\nspec: {power: Up, image: os}\n", []Rule{RuleValue}},
		"what Kubernetes keeps for itself":  {claim + "metadata: {name: web, uid: x}\n" + right, []Rule{RuleNoEffect}},
		"an annotation without effect":      {claim + "metadata: {name: web, annotations: {ingot/discover: x}}\n" + right, []Rule{RuleNoEffect}},
		"a secret that can be read":         {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n", []Rule{RuleSecret}},
		"a secret that cannot be decrypted": {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nsops: {}\n", []Rule{RuleSecret}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := Decode("a.yaml", []byte(tt.manifest), DecodeOptions{})
			var got []Rule
			for _, p := range problems {
				got = append(got, p.Rule)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v:\n%s", got, tt.want, problemLines(problems))
			}
		})
	}
}

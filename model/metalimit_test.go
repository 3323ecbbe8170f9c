package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// claimWith returns a claim with labels, annotations and the labels of a selector, so many
// of each. The annotations have ten bytes each.
func claimWith(labels, annotations, selected int) string {
	var b strings.Builder
	some := func(head, each string, n int) {
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, each, i)
		}
	}
	some("apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n  name: web\n  labels:\n", "    l%d: v\n", labels)
	some("  annotations:\n", "    a%06d: xyz\n", annotations)
	some("spec:\n  power: \"On\"\n  image: ghcr.io/x/y:1\n  serverSelector:\n    matchLabels:\n", "      l%d: v\n", selected)
	return b.String()
}

func TestAnObjectHasSoManyLabelsAndAnnotations(t *testing.T) {
	const annotationsAllowed = maxAnnotationBytes / 10
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"as many as are allowed": {text: claimWith(maxLabels, annotationsAllowed, maxLabels)},
		"more labels": {
			text: claimWith(maxLabels+1, 0, 0),
			want: []string{"f.yaml:5:3: metadata.labels: found 257 labels, at most 256 are allowed"},
		},
		"more annotations": {
			text: claimWith(0, annotationsAllowed+1, 0),
			want: []string{"f.yaml:6:3: metadata.annotations: the annotations have 262150 bytes, at most 262144 are allowed"},
		},
		"more labels of a selector": {
			text: claimWith(0, 0, maxLabels+1),
			want: []string{"f.yaml:11:5: spec.serverSelector.matchLabels: found 257 labels, at most 256 are allowed"},
		},
		"far more of all, each of them wrong": {
			text: strings.NewReplacer(": v\n", ": /\n", "    l", "    /").Replace(claimWith(20_000, 40_000, 5000)),
			want: []string{
				"f.yaml:5:3: metadata.labels: found 20000 labels, at most 256 are allowed",
				"f.yaml:20006:3: metadata.annotations: the annotations have 400000 bytes, at most 262144 are allowed",
				"f.yaml:60011:5: spec.serverSelector.matchLabels: found 5000 labels, at most 256 are allowed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Decode("f.yaml", []byte(tc.text), DecodeOptions{})
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Field, p.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func listsOf(n int) string {
	list := func(entry string) string { return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]" }
	var taints strings.Builder
	for i := range n {
		fmt.Fprintf(&taints, "{key: t%d},", i)
	}
	const head = "apiVersion: metal.ironcore.dev/v1alpha1\n"
	return head + "kind: Server\nmetadata: {name: a}\nspec:\n  bmcRef: {name: a}\n  taints: [" + strings.TrimSuffix(taints.String(), ",") + "]\n---\n" +
		head + "kind: ServerClaim\nmetadata: {name: web}\nspec:\n  power: \"On\"\n  image: ghcr.io/x/y:1\n" +
		"  tolerations: " + list("{operator: Exists}") + "\n" +
		"  serverSelector: {matchExpressions: " + list("{key: a, operator: Exists}") + "}\n---\n" +
		head + "kind: ServerClaim\nmetadata: {name: db}\nspec:\n  power: \"On\"\n  image: ghcr.io/x/y:1\n" +
		"  serverSelector: {matchExpressions: [{key: a, operator: In, values: " + list("b") + "}]}\n"
}

func TestListsThatAreComparedAreShort(t *testing.T) {
	const says = ": found 257 entries, at most 256 are allowed"
	want := []string{
		"spec.taints" + says, "spec.tolerations" + says, "spec.serverSelector.matchExpressions" + says,
		"spec.serverSelector.matchExpressions[0].values" + says,
	}
	for n, want := range map[int][]string{maxEntries: nil, maxEntries + 1: want} {
		_, problems := Decode("f.yaml", []byte(listsOf(n)), DecodeOptions{})
		var got []string
		for _, p := range problems {
			got = append(got, p.Field+": "+p.Message)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d entries, problems (-want +got):\n%s", n, diff)
		}
	}
}

func TestSchemasBoundAsTheDecoderDoes(t *testing.T) {
	j := newJudge(t)
	for _, text := range []string{claimWith(maxLabels, 1, maxLabels), claimWith(maxLabels+1, 1, 1), claimWith(1, 1, maxLabels+1), listsOf(maxEntries), listsOf(maxEntries + 1)} {
		j.file("f.yaml", []byte(text))
	}
	if j.manifests != 9 || j.wrong != 5 {
		t.Errorf("of %d manifests %d are wrong, want 5 of 9", j.manifests, j.wrong)
	}
}

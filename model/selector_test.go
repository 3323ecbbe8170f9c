package model

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ingot/model/must"
)

// TestSelectorsMatchAsInKubernetes compares with apimachinery on selectors and
// labels by chance, from few enough words that they often meet.
func TestSelectorsMatchAsInKubernetes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func(words ...string) string { return words[rnd.IntN(len(words))] }
	matched := 0
	for range 20_000 {
		s := &metav1.LabelSelector{}
		for range rnd.IntN(3) {
			if s.MatchLabels == nil {
				s.MatchLabels = make(map[string]string)
			}
			s.MatchLabels[word("rack", "zone", "gpu")] = word("", "a", "b")
		}
		for range rnd.IntN(3) {
			r := metav1.LabelSelectorRequirement{
				Key:      word("rack", "zone", "gpu"),
				Operator: metav1.LabelSelectorOperator(word("In", "NotIn", "Exists", "DoesNotExist")),
			}
			if r.Operator == "In" || r.Operator == "NotIn" {
				r.Values = []string{word("", "a"), word("a", "b")}
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		server := make(map[string]string)
		for range rnd.IntN(4) {
			server[word("rack", "zone", "gpu")] = word("", "a", "b")
		}
		compiled := must.Get(metav1.LabelSelectorAsSelector(s))(t)
		claim := &ServerClaim{Spec: ServerClaimSpec{ServerSelector: s}}
		want := compiled.Matches(labels.Set(server))
		if got := claim.Matches(server); got != want {
			t.Fatalf("%+v on %v: got %v, want %v", claim.Spec.ServerSelector, server, got, want)
		}
		if unmet := claim.Unmet(server); (unmet == "") != want {
			t.Fatalf("%+v on %v: unmet %q, matches %v", claim.Spec.ServerSelector, server, unmet, want)
		}
		if want {
			matched++
		}
	}
	if matched < 2_000 {
		t.Errorf("only %d selectors matched: too few to prove anything", matched)
	}
}

func TestUnmetSaysWhatAClaimAsksFirst(t *testing.T) {
	claim := &ServerClaim{Spec: ServerClaimSpec{ServerSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"rack": "b", "gpu": "a100"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "zone", Operator: "In", Values: []string{"x", "y"}},
			{Key: "room", Operator: "NotIn", Values: []string{"1"}},
			{Key: "ssd", Operator: "Exists"},
			{Key: "old", Operator: "DoesNotExist"},
		},
	}}}
	labels := map[string]string{"room": "1", "old": ""}
	for _, tt := range []struct{ want, key, value string }{ // each is met next
		{"gpu=a100", "gpu", "a100"},
		{"rack=b", "rack", "b"},
		{"zone in (x,y)", "zone", "y"},
		{"room not in (1)", "room", "2"},
		{"ssd", "ssd", ""},
		{"no old", "", ""},
	} {
		if got := claim.Unmet(labels); got != tt.want {
			t.Errorf("of %v: got %q, want %q", labels, got, tt.want)
		}
		labels[tt.key] = tt.value
	}
	if delete(labels, "old"); claim.Unmet(labels) != "" {
		t.Errorf("of %v: got %q", labels, claim.Unmet(labels))
	}
}

func TestARuleWithoutSelectorIsForAllServers(t *testing.T) {
	rule := &ServerReadinessRule{}
	if !rule.Matches(nil) {
		t.Error("no selector: got false")
	}
	rule.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "b"}}
	if rule.Matches(map[string]string{"rack": "a"}) || !rule.Matches(map[string]string{"rack": "b"}) {
		t.Error("the selector is not heeded")
	}
}

func TestToleration(t *testing.T) {
	gpu, a, b := Taint{"gpu", "1", TaintNoBind}, Taint{"a", "", TaintNoBind}, Taint{Key: "b", Value: "x"}
	tests := map[string]struct {
		taints      []Taint
		tolerations []Toleration
		keptOffBy   Taint
	}{
		"no taints keep nobody off":                {nil, nil, Taint{}},
		"a taint keeps off who does not tolerate":  {[]Taint{gpu}, nil, gpu},
		"the first that is not tolerated is named": {[]Taint{gpu, a, b}, []Toleration{{Key: "gpu", Value: "1"}}, a},
		"an equal key and value tolerate":          {[]Taint{gpu}, []Toleration{{"gpu", "Equal", "1", TaintNoBind}}, Taint{}},
		"no operator is Equal":                     {[]Taint{gpu}, []Toleration{{Key: "gpu", Value: "1"}}, Taint{}},
		"another value does not tolerate":          {[]Taint{gpu}, []Toleration{{Key: "gpu", Value: "2"}}, gpu},
		"Exists tolerates any value":               {[]Taint{gpu}, []Toleration{{Key: "gpu", Operator: "Exists"}}, Taint{}},
		"Exists without key tolerates everything":  {[]Taint{gpu, a, b}, []Toleration{{Operator: "Exists"}}, Taint{}},
		"a toleration of Evict is not of NoBind":   {[]Taint{gpu}, []Toleration{{"gpu", "Exists", "", TaintEvict}}, gpu},
		"a taint of Evict keeps nobody off":        {[]Taint{{"gpu", "1", TaintEvict}}, nil, Taint{}},
		"a taint without effect is NoBind":         {[]Taint{b}, nil, b},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &ServerClaim{Spec: ServerClaimSpec{Tolerations: tt.tolerations}}
			ok, first := claim.Tolerates(tt.taints)
			if diff := cmp.Diff(tt.keptOffBy, first); diff != "" || ok != (tt.keptOffBy == Taint{}) {
				t.Errorf("tolerates: %v; want -, got +:\n%s", ok, diff)
			}
		})
	}
}

// TestTolerationsAreThoseOfKubernetes compares all tolerations with all taints by the rules
// that its documentation gives: keys and effects are the same, and values too unless the
// operator is Exists; an empty effect is for all, and so is an empty key with Exists. Of
// effects NoBind counts, which is also what a taint without one has.
func TestTolerationsAreThoseOfKubernetes(t *testing.T) {
	effects, values := []TaintEffect{"", TaintNoBind, TaintEvict}, []string{"", "x", "y"}
	var tolerations []Toleration
	for _, l := range product([]string{"", "a", "b"}, values, effects) {
		for _, operator := range []string{"", "Equal", "Exists"} {
			if l.Key == "" && operator != "Exists" || operator == "Exists" && l.Value != "" {
				continue // refused, there too
			}
			tolerations = append(tolerations, Toleration{l.Key, operator, l.Value, l.Effect})
		}
	}
	for _, taint := range product([]string{"a", "b"}, values, effects) {
		for _, l := range tolerations {
			sameKey := l.Key == taint.Key || l.Key == "" && l.Operator == "Exists"
			sameValue := l.Operator == "Exists" || l.Value == taint.Value
			sameEffect := l.Effect == "" || l.Effect == TaintNoBind
			want := taint.Effect == TaintEvict || sameKey && sameValue && sameEffect
			c := &ServerClaim{Spec: ServerClaimSpec{Tolerations: []Toleration{l}}}
			if got, _ := c.Tolerates([]Taint{taint}); got != want {
				t.Errorf("%+v with %+v: %v, want %v", taint, l, got, want)
			}
		}
	}
}

func product(keys, values []string, effects []TaintEffect) (all []Taint) {
	for _, k := range keys {
		for _, v := range values {
			for _, e := range effects {
				all = append(all, Taint{k, v, e})
			}
		}
	}
	return all
}

func TestOperationIsNamedBeforeTheHash(t *testing.T) {
	for value, want := range map[string]string{
		"":                     "",
		"park":                 "park",
		"power-cycle-server#2": OperationPowerCycle,
		"retry##":              OperationRetry,
	} {
		m := &Meta{Annotations: map[string]string{AnnotationOperation: value}}
		if name, whole := m.Operation(); name != want || whole != value {
			t.Errorf("%q: got %q, %q", value, name, whole)
		}
	}
	if name, value := new(Meta).Operation(); name != "" || value != "" {
		t.Errorf("no annotations: got %q, %q", name, value)
	}
}

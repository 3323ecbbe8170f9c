package model

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Matches reports whether the claim's selector takes a server with these labels.
// A claim without selector takes every server. It says nothing of serverRef.
func (o *ServerClaim) Matches(labels map[string]string) bool {
	return selectorMatches(o.Spec.ServerSelector, labels)
}

// Unmet returns the first requirement of the claim's selector that labels do not
// meet, for messages: "rack=b", or "zone in (x,y)"; "" when they meet all.
func (o *ServerClaim) Unmet(labels map[string]string) string {
	return o.UnmetOf(o.RequiredKeys(), labels)
}

// RequiredKeys are the keys of the labels that the claim's selector requires to have one value, in
// the order in which Unmet looks at them.
func (o *ServerClaim) RequiredKeys() []string {
	if o.Spec.ServerSelector == nil {
		return nil
	}
	keys := make([]string, 0, len(o.Spec.ServerSelector.MatchLabels))
	for key := range o.Spec.ServerSelector.MatchLabels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// UnmetOf is Unmet for one who looks at many servers: keys are RequiredKeys, without those that all of
// these servers are known to have as the selector requires.
func (o *ServerClaim) UnmetOf(keys []string, labels map[string]string) string {
	s := o.Spec.ServerSelector
	if s == nil {
		return ""
	}
	for _, key := range keys {
		if !hasLabel(labels, key, s.MatchLabels[key]) {
			return equality(key, s.MatchLabels[key])
		}
	}
	for i := range s.MatchExpressions {
		if r := &s.MatchExpressions[i]; !requirementMet(r, labels) {
			return requirementText(r)
		}
	}
	return ""
}

// selectorMatches has the meaning of apimachinery's LabelSelectorAsSelector, but
// that no selector takes all. It needs no compiled form: what is compiled there
// is validation, which decoding has done.
func selectorMatches(s *metav1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, value := range s.MatchLabels {
		if !hasLabel(labels, key, value) {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !requirementMet(&s.MatchExpressions[i], labels) {
			return false
		}
	}
	return true
}

func hasLabel(labels map[string]string, key, want string) bool {
	value, ok := labels[key]
	return ok && value == want
}

// requirementMet is false for an operator that is none.
func requirementMet(r *metav1.LabelSelectorRequirement, labels map[string]string) bool {
	value, ok := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return ok && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return ok
	case metav1.LabelSelectorOpDoesNotExist:
		return !ok
	}
	return false
}

func equality(key, value string) string { return key + "=" + value }

func requirementText(r *metav1.LabelSelectorRequirement) string {
	values := " (" + strings.Join(r.Values, ",") + ")"
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return r.Key + " in" + values
	case metav1.LabelSelectorOpNotIn:
		return r.Key + " not in" + values
	case metav1.LabelSelectorOpExists:
		return r.Key
	case metav1.LabelSelectorOpDoesNotExist:
		return "no " + r.Key
	}
	return r.Key + " " + string(r.Operator) + values
}

// ServerLabels are the labels of a server: those of its BMC, and over them those of its
// own manifest; either may be nil. The map is not to be changed.
func ServerLabels(b *BMC, s *Server) map[string]string {
	switch {
	case b == nil && s == nil:
		return nil
	case s == nil || b != nil && len(s.Labels) == 0:
		return b.Labels
	case b == nil || len(b.Labels) == 0:
		return s.Labels
	}
	l := maps.Clone(b.Labels)
	maps.Copy(l, s.Labels)
	return l
}

// LabelValues are the values that servers have of each label.
type LabelValues map[string]map[string]bool

// Add takes in the labels of a server.
func (l LabelValues) Add(labels map[string]string) {
	for key, value := range labels {
		values := l[key]
		if values == nil {
			values = make(map[string]bool)
			l[key] = values
		}
		values[value] = true
	}
}

// Stray says which label that a selector requires no server at all has, or "". Near is what
// may have been meant, as Guesses.Near says it.
func (l LabelValues) Stray(s *metav1.LabelSelector, g *Guesses) (stray, near string) {
	if s == nil {
		return "", ""
	}
	first := ""
	for key, value := range s.MatchLabels {
		if !l[key][value] && (first == "" || key < first) {
			first = key
		}
	}
	if first != "" {
		value := s.MatchLabels[first]
		return equality(first, value), l.near(first, []string{value}, g)
	}
	for i := range s.MatchExpressions {
		r := &s.MatchExpressions[i]
		in := r.Operator == metav1.LabelSelectorOpIn
		has := func(value string) bool { return l[r.Key][value] }
		if in && !slices.ContainsFunc(r.Values, has) || r.Operator == metav1.LabelSelectorOpExists && l[r.Key] == nil {
			return requirementText(r), l.near(r.Key, r.Values, g)
		}
	}
	return "", ""
}

// near guesses which label was meant by one that no server has: another value of its key, or
// a key that is spelt alike.
func (l LabelValues) near(key string, values []string, g *Guesses) string {
	switch {
	case g.Left < leastCost:
		return ""
	case l[key] == nil:
		return g.Near(key, slices.Sorted(maps.Keys(l)))
	}
	known := slices.Sorted(maps.Keys(l[key]))
	for _, value := range values {
		if near := g.nearest(value, known); near != "" {
			return didYouMean(equality(key, near))
		}
	}
	return ""
}

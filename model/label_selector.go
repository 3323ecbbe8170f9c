package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// LabelSelector selects objects by their labels. The zero one selects all.
type LabelSelector struct {
	text string
	s    *metav1.LabelSelector
}

// operators are those of requirements, as manifests have them.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// ParseLabelSelector reads a selector as kubectl's -l has it: "rack=7,zone in (a,b),!gpu".
func ParseLabelSelector(text string) (LabelSelector, error) {
	if text == "" {
		return LabelSelector{}, nil
	}
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return LabelSelector{}, noSelector(text, err)
	}
	s := &metav1.LabelSelector{}
	for _, r := range requirements {
		operator, known := operators[r.Operator()]
		if !known {
			return LabelSelector{}, noSelector(text, fmt.Errorf("operator %s is not known", r.Operator()))
		}
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted()})
	}
	return LabelSelector{text, s}, nil
}

func noSelector(text string, err error) error {
	return fmt.Errorf("%q selects by no labels: %w; write it as rack=7, rack!=7, zone in (a,b), zone notin (a,b), gpu or !gpu, several with a comma between them", text, err)
}

// String is the selector as it was written.
func (l LabelSelector) String() string { return l.text }

// Labels is the selector as a manifest has it: what is to equal one value by label, the rest as
// expressions. A label cannot equal two values.
func (l LabelSelector) Labels() (*metav1.LabelSelector, error) {
	if l.s == nil {
		return nil, nil
	}
	out := new(metav1.LabelSelector)
	for _, r := range l.s.MatchExpressions {
		if r.Operator != metav1.LabelSelectorOpIn || len(r.Values) != 1 {
			out.MatchExpressions = append(out.MatchExpressions, r)
			continue
		}
		if other, has := out.MatchLabels[r.Key]; has && other != r.Values[0] {
			return nil, fmt.Errorf("%q selects nothing: label %s cannot be both %s and %s; write %[2]s in (%[3]s,%[4]s) if either will do",
				l.text, r.Key, other, r.Values[0])
		}
		if out.MatchLabels == nil {
			out.MatchLabels = make(map[string]string)
		}
		out.MatchLabels[r.Key] = r.Values[0]
	}
	return out, nil
}

// Matches reports whether the selector takes what has these labels.
func (l LabelSelector) Matches(labels map[string]string) bool { return selectorMatches(l.s, labels) }

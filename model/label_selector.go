package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelSelector selects objects by their labels. The zero one selects all.
type LabelSelector struct {
	text string
	s    *metav1.LabelSelector
}

// ParseLabelSelector reads a selector as kubectl's -l has it: "rack=7,zone in (a,b),!gpu".
func ParseLabelSelector(text string) (LabelSelector, error) {
	if text == "" {
		return LabelSelector{}, nil
	}
	s, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return LabelSelector{}, fmt.Errorf("%q selects by no labels: %w; write it as rack=7, rack!=7, zone in (a,b), zone notin (a,b), gpu or !gpu, several with a comma between them", text, err)
	}
	return LabelSelector{text, s}, nil
}

// String is the selector as it was written.
func (l LabelSelector) String() string { return l.text }

// Matches reports whether the selector takes what has these labels.
func (l LabelSelector) Matches(labels map[string]string) bool { return selectorMatches(l.s, labels) }

package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionOf is a condition in a line, "" when it is not there.
func conditionOf(conds []metav1.Condition, kind string) string {
	for _, c := range conds {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

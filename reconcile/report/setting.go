package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
)

// indicatorCondition says why the indicator is not as Git says, if Git still says so.
func (s serverView) indicatorCondition() (c metav1.Condition, failed bool) {
	p := s.Record.IndicatorProblem
	if p == nil || s.Manifest == nil || s.Manifest.Spec.IndicatorLED != p.Want {
		return metav1.Condition{}, false
	}
	return s.settingCondition("IndicatorLED", "its indicator is not "+p.Want, p), true
}

// settingCondition says what is not as Git says, and what comes next.
func (s serverView) settingCondition(kind, what string, p *model.SettingProblem) metav1.Condition {
	next := "it is tried again"
	if plan.SettingRefused(p) {
		next = fmt.Sprintf("it is asked for again once the manifest or the BMC's firmware is another, or annotation %s of Server %s has a "+
			"new value: %s#…", model.AnnotationOperation, s.Name, model.OperationRetry)
	}
	return condition(kind, false, p.Reason, fmt.Sprintf("%s: %s; %s", what, p.Message, next), p.Since)
}

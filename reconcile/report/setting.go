package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
)

// settingConditions say why settings are not as Git says, if Git still says so.
func (s serverView) settingConditions() (conds []metav1.Condition) {
	if s.Manifest == nil {
		return nil
	}
	spec := &s.Manifest.Spec
	if p := s.Record.IndicatorProblem; p != nil && spec.IndicatorLED == p.Want {
		conds = append(conds, s.settingCondition("IndicatorLED", "its indicator is not "+p.Want, p))
	}
	if p := s.Record.BootOrderProblem; p != nil && strings.HasPrefix(p.Want, model.BootOrderWish(spec.BootOrder)) {
		conds = append(conds, s.settingCondition("BootOrder", "its boot order is not as its manifest says", p))
	}
	return conds
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

package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/settings"
)

// settingConditions say why settings are not as Git says, if Git still says so.
func (s serverView) settingConditions() (conds []metav1.Condition) {
	if s.Manifest == nil {
		return nil
	}
	spec := &s.Manifest.Spec
	if p := s.Record.Settings.IndicatorProblem; p != nil && spec.IndicatorLED == p.Want {
		conds = append(conds, s.settingCondition(typeIndicatorLED, "its indicator is not "+p.Want, p))
	}
	wish := model.BootOrderWish(spec.BootOrder)
	if p := s.Record.Settings.BootOrderProblem; p != nil && strings.HasPrefix(p.Want, wish) {
		conds = append(conds, s.settingCondition(typeBootOrder, "its boot order is not as its manifest says", p))
	} else if p := s.Record.Settings.BootOrderPending; p != nil && strings.HasPrefix(s.Record.Settings.BootOrderSet, wish) && !s.hasBootOrder(p.Order) {
		conds = append(conds, condition(typeBootOrder, false, model.ReasonSettingPending,
			"its BMC has taken the boot order, which counts from its next start on: "+strings.Join(p.Order, ", "), p.Since))
	}
	return conds
}

// hasBootOrder reports whether the server was last read to have the order.
func (s serverView) hasBootOrder(order []string) bool {
	return s.facts().Inventory != nil && slices.Equal(s.facts().Inventory.BootOrder, order)
}

// settingCondition says what is not as Git says, and what comes next.
func (s serverView) settingCondition(kind, what string, p *model.SettingProblem) metav1.Condition {
	next := "it is tried again"
	if settings.Refused(p) {
		next = fmt.Sprintf("it is asked for again once the manifest or the BMC's firmware is another, or annotation %s of Server %s has a "+
			"new value: %s#…", model.AnnotationOperation, s.Name, model.OperationRetry)
	}
	return condition(kind, false, p.Reason, fmt.Sprintf("%s: %s; %s", what, p.Message, next), p.Since)
}

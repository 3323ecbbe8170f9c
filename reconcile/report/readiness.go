package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/proposal"
)

// TaintStatus is a taint that a ServerReadinessRule keeps on a server.
type TaintStatus struct {
	model.Taint
	Rule    string `json:"rule"`
	Message string `json:"message"` // which conditions do not hold
}

// ReadinessRuleStatus is what is so of a ServerReadinessRule.
type ReadinessRuleStatus struct {
	Servers int             `json:"servers"` // that it is for
	Ready   int             `json:"ready"`   // those of them that it does not taint
	Unready []UnreadyServer `json:"unready,omitempty"`
	LeftOut string          `json:"leftOut,omitempty"` // how many more there are
	Message string          `json:"message,omitempty"` // why it has no effect
}

// UnreadyServer is a server that a rule taints.
type UnreadyServer struct {
	Server  model.ServerName `json:"server"`
	Message string           `json:"message"` // which conditions do not hold
}

func readinessRuleDocument(r *bind.ReadinessRule) *Document {
	d := newDocument(model.KindServerReadinessRule, r.Name)
	d.Spec = r.Manifest.Spec
	st := ReadinessRuleStatus{Servers: r.Servers, Ready: r.Ready}
	if r.Refused {
		st.Message = fmt.Sprintf("refused: those below %s may define no Server (git.tenants), so they keep none from others", r.Manifest.Tenant)
	}
	for _, u := range r.Unready {
		st.Unready = append(st.Unready, UnreadyServer{u.Name, shownText(u.Unmet)})
	}
	if more := r.Servers - r.Ready - len(r.Unready); more > 0 {
		st.LeftOut = text.Plural(more, "server") + " more"
	}
	d.Status = st
	return d
}

// readinessOutcome says how many servers a ServerReadinessRule is met by.
func readinessOutcome(_, now *Document) outcome {
	st := now.Status.(ReadinessRuleStatus)
	return outcome{weighsStep, fmt.Sprintf("%d of %s ready", st.Ready, text.Plural(st.Servers, "server"))}
}

// madeOfTaints are the taints of a server as a part of what its document was made from.
func madeOfTaints(all []proposal.RuleTaint) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range all {
		fmt.Fprintf(&b, "%v\n", t)
	}
	return b.String()
}

// bootstrapMarks are upstream's annotations for the rules that a server was ready for once.
func bootstrapMarks(rec *model.ServerRecord) map[string]string {
	if len(rec.Life.BootstrapCompleted) == 0 {
		return nil
	}
	marks := make(map[string]string, len(rec.Life.BootstrapCompleted))
	for _, rule := range rec.Life.BootstrapCompleted {
		marks[model.AnnotationBootstrapCompleted+rule] = "true"
	}
	return marks
}

// inventoryCondition names the parts of a server that could not be read, if there are any.
func (s serverView) inventoryCondition() (c metav1.Condition, telling bool) {
	inv := s.facts().Inventory
	if inv == nil || len(inv.Problems) == 0 {
		return metav1.Condition{}, false
	}
	return condition(model.ConditionInventoryComplete, false, reasonPartsUnreadable, strings.Join(inv.Problems, "; "), s.Record.Life.Since), true
}

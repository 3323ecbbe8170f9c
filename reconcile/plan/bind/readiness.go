package bind

import (
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// MaxUnready is how many servers are listed that are not ready for a rule.
const MaxUnready = 20

// ReadinessRule is one ServerReadinessRule in force.
type ReadinessRule struct {
	Name     string
	Manifest *model.ServerReadinessRule
	Refused  bool // its tenant may not keep servers from others
	// Servers counts the servers that the rule is for, Ready those whose conditions hold.
	Servers, Ready int
	Unready        []UnreadyServer // the first of the others by name
}

// UnreadyServer is a server for which the conditions of a rule do not hold.
type UnreadyServer struct {
	Name  model.ServerName
	Unmet string // those that do not, with their statuses
}

// readiness applies all rules to all servers. A rule keeps servers from claims of other tenants, too.
func (f *Fleet) readiness() {
	f.Rules = make([]ReadinessRule, 0, len(f.Desired.ReadinessRules))
	inOrder(f.Desired.ReadinessRules, func(m *model.ServerReadinessRule) {
		of := f.Tenants.At(m.Tenant)
		r := ReadinessRule{Name: m.Name, Manifest: m, Refused: of != nil && !slices.Contains(of.AllowedKinds(), model.KindServer)}
		for i := range f.Servers {
			if s := &f.Servers[i]; !r.Refused && m.Matches(s.Labels) {
				r.apply(s)
			}
		}
		f.Rules = append(f.Rules, r)
	})
}

// apply taints a server unless the conditions hold, or have held once where that is enough.
func (r *ReadinessRule) apply(s *Server) {
	r.Servers++
	once := r.Manifest.Spec.EnforcementMode == model.BootstrapOnly
	known := once && slices.Contains(s.Bootstrapped, r.Name)
	if unmet := s.unmet(r.Manifest.Spec.Conditions); unmet != "" && !known {
		s.Taints = append(s.Taints, proposal.RuleTaint{Taint: r.Manifest.Spec.Taint, Rule: r.Name, Unmet: unmet})
		if len(r.Unready) < MaxUnready {
			r.Unready = append(r.Unready, UnreadyServer{s.Name, unmet})
		}
		return
	}
	r.Ready++
	if once && !known {
		s.Ready = append(s.Ready, r.Name)
	}
}

// unmet lists the conditions that do not hold.
func (s *Server) unmet(conditions []model.RequiredCondition) string {
	var texts []string
	for _, c := range conditions {
		if status := s.condition(c.Type); status != c.RequiredStatus {
			texts = append(texts, c.Type+" is "+status+" and has to be "+c.RequiredStatus)
		}
	}
	return strings.Join(texts, ", ")
}

// condition is the status of a condition. An unknown condition is a label.
func (s *Server) condition(kind string) string {
	switch kind {
	case model.ConditionBMCReadable:
		return s.BMCReadable
	case model.ConditionDiscovered:
		return s.Discovered
	case model.ConditionInventoryComplete:
		return s.InventoryComplete
	case model.ConditionWiped:
		return s.Wiped
	}
	return model.LabelStatus(s.Labels, kind)
}

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
		of := f.Policy.Tenants.At(m.Tenant)
		r := ReadinessRule{Name: m.Name, Manifest: m, Refused: of != nil && !slices.Contains(of.AllowedKinds(), model.KindServer)}
		for _, s := range f.Servers {
			if !r.Refused && m.Matches(s.Labels) {
				r.apply(s)
			}
		}
		f.Rules = append(f.Rules, r)
	})
}

// apply taints a server unless the conditions hold, or have held once where that is enough.
func (r *ReadinessRule) apply(s *View) {
	r.Servers++
	once := r.Manifest.Spec.EnforcementMode == model.BootstrapOnly
	known := once && slices.Contains(s.Record.Life.BootstrapCompleted, r.Name)
	if unmet := s.unmet(r.Manifest.Spec.Conditions); unmet != "" && !known {
		s.Taints = append(s.Taints, proposal.RuleTaint{Taint: r.Manifest.Spec.Taint, Rule: r.Name, Unmet: unmet})
		if len(r.Unready) < MaxUnready {
			r.Unready = append(r.Unready, UnreadyServer{s.Name, unmet})
		}
		return
	}
	r.Ready++
	if once && !known {
		s.Bootstrapped = append(s.Bootstrapped, r.Name)
	}
}

func (s *View) unmet(conditions []model.RequiredCondition) string {
	var texts []string
	for _, c := range conditions {
		if status := s.condition(c.Type); status != c.RequiredStatus {
			texts = append(texts, c.Type+" is "+status+" and has to be "+c.RequiredStatus)
		}
	}
	return strings.Join(texts, ", ")
}

// condition is the status of a condition. An unknown condition is a label.
func (s *View) condition(kind string) string {
	switch kind {
	case model.ConditionBMCReadable:
		return s.bmcReadable()
	case model.ConditionDiscovered:
		// A probe's report can be lost with the store, the record has its disks still.
		return status(s.Observed.Probes[s.Name] != nil || !s.Record.Disks.KnownAt.IsZero())
	case model.ConditionInventoryComplete:
		if s.Facts.Inventory == nil {
			return model.StatusUnknown
		}
		return status(len(s.Facts.Inventory.Problems) == 0)
	case model.ConditionWiped:
		return s.wiped()
	}
	return model.LabelStatus(s.Labels, kind)
}

func status(holds bool) string {
	if holds {
		return model.StatusTrue
	}
	return model.StatusFalse
}

// bmcReadable is the status of ConditionBMCReadable. A BMC counts as readable until it does not answer.
func (s *View) bmcReadable() string {
	switch s.Blocked.Reason {
	case model.ReasonPending, model.ReasonIgnored, model.ReasonOrphaned, model.ReasonDecommissioned:
		return model.StatusUnknown
	}
	return status(s.Blocked.Reason == "" && s.Reading.Failures < 2)
}

func (s *View) wiped() string {
	d := &s.Record.Disks
	failed := slices.ContainsFunc(d.Wiped, func(w model.DiskWipe) bool { return w.Result == model.WipeFailed })
	missing := slices.ContainsFunc(d.Missing, func(m model.MissingDisk) bool { return !m.Gone })
	if !failed && !missing && len(d.Wiped) == 0 {
		return model.StatusUnknown
	}
	return status(!failed && !missing)
}

package plan

import (
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// MaxUnready is how many of the servers that are not ready for a rule are named.
const MaxUnready = 20

// ReadinessRule is one ServerReadinessRule in force.
type ReadinessRule struct {
	Name     string
	Manifest *model.ServerReadinessRule
	Refused  bool // its tenant may not keep servers from others
	// Servers is for how many it is, Ready for how many of these its conditions hold.
	Servers, Ready int
	Unready        []UnreadyServer // the first of the others, in the order of names
}

// UnreadyServer is a server for which the conditions of a rule do not hold.
type UnreadyServer struct {
	Name  model.ServerName
	Unmet string // those that do not, with their statuses
}

// RuleTaint is the taint that a ServerReadinessRule keeps on a server.
type RuleTaint struct {
	model.Taint
	Rule  string
	Unmet string // the conditions that do not hold, with their statuses
}

// judgeReadiness finds the taints that ServerReadinessRules keep on each server.
func (f *fleet) judgeReadiness() {
	all := f.in.Desired.ReadinessRules
	f.readiness = make([]ReadinessRule, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := ReadinessRule{Name: name, Manifest: all[name], Refused: !f.mayTaint(all[name])}
		texts := make(unmetTexts)
		for _, s := range f.servers {
			if !r.Refused && r.Manifest.Matches(f.serverLabels(s)) {
				r.judge(s, texts)
			}
		}
		f.readiness = append(f.readiness, r)
	}
}

// judge taints a server unless the conditions hold, or have held once where that is enough.
func (r *ReadinessRule) judge(s *server, texts unmetTexts) {
	once := r.Manifest.Spec.EnforcementMode == model.BootstrapOnly
	r.Servers++
	if once && slices.Contains(s.rec.Life.BootstrapCompleted, r.Name) {
		r.Ready++
		return
	}
	unmet := texts.of(r.Manifest.Spec.Conditions, s)
	switch {
	case unmet != "":
		s.taints = append(s.taints, RuleTaint{Taint: r.Manifest.Spec.Taint, Rule: r.Name, Unmet: unmet})
		if len(r.Unready) < MaxUnready {
			r.Unready = append(r.Unready, UnreadyServer{s.name, unmet})
		}
		return
	case once:
		s.bootstrapped = append(s.bootstrapped, r.Name)
	}
	r.Ready++
}

// unmetTexts say which conditions of one rule do not hold, by the statuses of all of them.
// Many servers lack the same, so each text is made once.
type unmetTexts map[uint64]string

// of says which conditions do not hold for a server, "" if all do.
func (t unmetTexts) of(conditions []model.RequiredCondition, s *server) string {
	statuses, unmet := uint64(0), false // MaxRequiredConditions fit
	for _, c := range conditions {
		status := s.condition(c.Type)
		statuses = statuses<<2 | uint64(len(status)-len(model.StatusTrue)) // True 0, False 1, Unknown 3
		unmet = unmet || status != c.RequiredStatus
	}
	if !unmet {
		return ""
	}
	if text, made := t[statuses]; made {
		return text
	}
	var texts []string
	for _, c := range conditions {
		if status := s.condition(c.Type); status != c.RequiredStatus {
			texts = append(texts, c.Type+" is "+status+" and has to be "+c.RequiredStatus)
		}
	}
	t[statuses] = strings.Join(texts, ", ")
	return t[statuses]
}

// condition is the status of a condition of the server. What is no condition that is known
// is a label.
func (s *server) condition(kind string) string {
	switch kind {
	case model.ConditionBMCReadable:
		return s.bmcReadable()
	case model.ConditionDiscovered:
		return status(s.fleet.in.Observed.Probes[s.name] != nil || !s.rec.Disks.KnownAt.IsZero()) // the record is there after a lost store, too
	case model.ConditionInventoryComplete:
		if s.facts.Inventory == nil {
			return model.StatusUnknown
		}
		return status(len(s.facts.Inventory.Problems) == 0)
	case model.ConditionWiped:
		return wiped(s.rec)
	}
	return model.LabelStatus(s.fleet.serverLabels(s), kind)
}

func status(holds bool) string {
	if holds {
		return model.StatusTrue
	}
	return model.StatusFalse
}

// bmcReadable is the status of ConditionBMCReadable. A BMC that was read before a restart
// counts as readable until it does not answer, as its own status says.
func (s *server) bmcReadable() string {
	switch s.blocked.Reason {
	case model.ReasonPending, model.ReasonIgnored, model.ReasonOrphaned, model.ReasonDecommissioned:
		return model.StatusUnknown
	}
	return status(s.blocked.Reason == "" && s.reading.Failures < 2)
}

// wiped is the status of ConditionWiped.
func wiped(rec *model.ServerRecord) string {
	failed := slices.ContainsFunc(rec.Disks.Wiped, func(d model.DiskWipe) bool { return d.Result == model.WipeFailed })
	missing := slices.ContainsFunc(rec.Disks.Missing, func(m model.MissingDisk) bool { return !m.Gone })
	if !failed && !missing && len(rec.Disks.Wiped) == 0 {
		return model.StatusUnknown
	}
	return status(!failed && !missing)
}

// noteBootstrapped has the record remember for which rules the server was ready once, and
// forget those that a commit took away: a rule that cannot be read, or is merely absent,
// goes on to be remembered. It touches nothing.
func (s *server) noteBootstrapped() (Step, bool) {
	f, known := s.fleet, s.rec.Life.BootstrapCompleted
	gone := func(rule string) bool {
		return f.in.Desired.ReadinessRules[rule] == nil && f.removed(model.ReadinessRuleIdentity(rule))
	}
	if f.observeOnly.Reason != "" || len(s.bootstrapped) == 0 && !slices.ContainsFunc(known, gone) {
		return Step{}, false
	}
	all := JoinBootstrapped(slices.DeleteFunc(slices.Clone(known), gone), s.bootstrapped)
	if slices.Equal(all, known) {
		return Step{}, false // there are more than are remembered: the others are judged each time
	}
	s.edit().Life.BootstrapCompleted = all
	return s.stay(), true
}

// JoinBootstrapped adds rules that a server was ready for to those that are known, as many
// as are remembered.
func JoinBootstrapped(known, more []string) []string {
	all := slices.Clone(known)
	for _, rule := range more {
		if len(all) < model.MaxBootstrapCompleted && !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	slices.Sort(all)
	return all
}

// awaitsConditions says by which rules no new claim gets the server, if so.
func (s *server) awaitsConditions() proposal.Why {
	var texts []string
	for _, t := range s.taints {
		if t.Effect != model.TaintEvict {
			texts = append(texts, "ServerReadinessRule "+t.Rule+" keeps taint "+t.Key+" on it: "+t.Unmet)
		}
	}
	if len(texts) == 0 {
		return proposal.Why{}
	}
	return s.whySince(model.ReasonConditionsUnmet, strings.Join(texts, "; "), proposal.RackOperator)
}

// taintedBy is the rule whose taint keeps a claim off a server, "" if none does.
func (s *server) taintedBy(c *model.ServerClaim) string {
	for i := range s.taints {
		if ok, _ := c.Tolerates([]model.Taint{s.taints[i].Taint}); !ok {
			return s.taints[i].Rule
		}
	}
	return ""
}

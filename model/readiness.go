package model

import "strings"

// Statuses of a condition.
const (
	StatusTrue    = "True"
	StatusFalse   = "False"
	StatusUnknown = "Unknown"
)

// Enforcement modes of a ServerReadinessRule.
const (
	BootstrapOnly = "BootstrapOnly" // until all conditions have held once
	Continuous    = "Continuous"
)

// What a ServerReadinessRule may require of a server, beside its labels.
const (
	ConditionBMCReadable       = "BMCReadable"       // its BMC answers, and shows the server
	ConditionDiscovered        = "Discovered"        // a probe has reported of it
	ConditionInventoryComplete = "InventoryComplete" // its BMC showed its parts, and all of them could be read
	ConditionWiped             = "Wiped"             // the last wipe accounted for all of its disks
)

var readinessConditions = []string{ConditionBMCReadable, ConditionDiscovered, ConditionInventoryComplete, ConditionWiped}

// Limits on ServerReadinessRules.
const (
	// MaxRequiredConditions is how many conditions a rule may have.
	MaxRequiredConditions = 32
	// MaxBootstrapCompleted is how many rules a server's record remembers.
	MaxBootstrapCompleted = 64
)

// AnnotationBootstrapCompleted is followed by the name of a BootstrapOnly rule that a server
// has been ready for.
const AnnotationBootstrapCompleted = "readiness.metal.ironcore.dev/bootstrap-completed-"

// Matches reports whether the rule is for a server with these labels. A rule without
// selector is for every server.
func (o *ServerReadinessRule) Matches(labels map[string]string) bool {
	return selectorMatches(o.Spec.ServerSelector, labels)
}

// LabelStatus is the status of the condition that a label of a server attests: what its value
// says, in upper or lower case.
func LabelStatus(labels map[string]string, key string) string {
	value := labels[key]
	for _, status := range []string{StatusTrue, StatusFalse} {
		if strings.EqualFold(value, status) {
			return status
		}
	}
	return StatusUnknown
}

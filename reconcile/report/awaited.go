package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan"
)

// ExplainAwaited explains an Endpoint in Git that names no MAC address and whose device is not
// known: the status branch has nothing of it, as there is nothing to record. It reports false
// for any other.
func ExplainAwaited(in *plan.Input, name string) (Explanation, bool) {
	m := in.Desired.Endpoints[name]
	if m == nil || m.Spec.MACAddress != "" {
		return Explanation{}, false
	}
	e := Explanation{Kind: endpointKind, Name: name, Why: "waits for " + m.Awaits()}
	holder := holderOf(in.Observed.EndpointFacts, m.Spec.IP)
	switch {
	case holder == nil:
		e.Actor, e.Next = string(plan.RackOperator), "check that the device has power and link, and that its port or client identifier is the one in the manifest"
	case holder.Reserved == name:
		e.Why = fmt.Sprintf("device %s has its address, and another Endpoint in Git is for that device by its MAC address", holder.MACAddress)
		e.Actor, e.Next = string(plan.RackOperator), "remove one of the two Endpoints"
	default:
		e.Why += fmt.Sprintf("; device %s had the address %s before it was reserved, and keeps it until its lease ends", holder.MACAddress, m.Spec.IP)
		e.Next = goesOn
	}
	e.fact("reserved address", m.Spec.IP)
	e.fact("manifest", m.Source)
	return e, true
}

// holderOf returns the device that has an IP address, nil if none is known: of several, the
// one that got it last.
func holderOf(all map[string]*model.EndpointFacts, ip string) (holder *model.EndpointFacts) {
	for _, mac := range slices.Sorted(maps.Keys(all)) {
		facts := all[mac]
		if facts.IP == ip && (holder == nil || cmp.Or(facts.Since.Compare(holder.Since), 1) > 0) {
			holder = facts
		}
	}
	return holder
}

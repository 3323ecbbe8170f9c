package plan

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// awaited are the Endpoints in Git that name no MAC address and whose devices are not known, in
// the order of names. There is nothing to record of them.
func (f *fleet) awaited() (all []Endpoint) {
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Endpoints)) {
		m := f.in.Desired.Endpoints[name]
		if why := f.awaits(m); why.Reason != "" {
			all = append(all, Endpoint{Name: name, IP: m.Spec.IP, Manifest: m, Why: why})
		}
	}
	return all
}

// awaits says why it is not known which device an Endpoint in Git is: the zero Why if it is known,
// or if there is no such Endpoint.
func (f *fleet) awaits(m *model.Endpoint) proposal.Why {
	if m == nil || m.Spec.MACAddress != "" || f.endpointBy[m.Name] != nil {
		return proposal.Why{}
	}
	waits := "no lease yet for " + m.Awaits()
	holder := f.in.Observed.EndpointFacts[f.holders[m.Spec.IP]]
	switch {
	case holder == nil:
		return proposal.Why{Reason: model.ReasonAwaitingDevice, Message: waits, Actor: proposal.RackOperator}
	case holder.Reserved == m.Name:
		return proposal.Why{Reason: model.ReasonDeviceInGitTwice, Message: fmt.Sprintf("device %s has its address, and another Endpoint in Git is for that device by its MAC address",
			holder.MACAddress), Since: holder.Since, Actor: proposal.RackOperator}
	}
	return proposal.Why{Reason: model.ReasonAddressStillLeased, Message: fmt.Sprintf("%s; device %s had the address %s before it was reserved, and keeps it until its lease ends",
		waits, holder.MACAddress, m.Spec.IP), Since: holder.Since, Actor: proposal.ActorNone}
}

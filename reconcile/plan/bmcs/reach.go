package bmcs

import (
	"cmp"
	"fmt"
	"net/netip"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// reach sets the BMC's target, and says why its servers must wait: it cannot be reached, or it was not
// read since its address changed, so that another machine may have that address (B34).
func (s *Set) reach(b *BMC) proposal.Why {
	b.Target = model.BMCTarget{
		Name: b.Name, Scheme: cmp.Or(b.Manifest.Spec.Protocol.Scheme, "https"), Fingerprint: b.Record.Fingerprint, Hostname: b.Manifest.Spec.Hostname,
		TLSMinimum: b.Manifest.Annotations[model.AnnotationTLSMinimum],
	}
	if b.isIgnored() {
		return b.why(model.ReasonIgnored, "suspended by annotation "+model.AnnotationOperation+": ignore", proposal.RackOperator)
	}
	ip, why := s.ip(b)
	if why.Reason != "" {
		return why
	}
	if err := s.refused(b, ip); err != nil {
		return b.why(model.ReasonAddressNotAllowed, err.Error(), proposal.RackOperator)
	}
	b.Target.Address = b.Manifest.Spec.Protocol.Address(ip)
	if why := s.logIn(b); why.Reason != "" {
		return why
	}
	switch rec := b.Record; {
	case rec.Reason == model.ReasonAuthenticationFailed && b.trial != "":
		return b.why(rec.Reason, b.refusals()+"; the next is tried", proposal.ActorNone)
	case rec.Reason != "":
		return b.why(rec.Reason, rec.LastError, proposal.RackOperator)
	case b.Facts == nil || rec.Address == "":
		return b.why(model.ReasonPending, "the BMC has not answered yet", proposal.ActorNone)
	case rec.Address != b.Target.Address:
		return b.why(model.ReasonPending, fmt.Sprintf("its address is %s now, no longer %s: what answers there is checked first",
			b.Target.Address, rec.Address), proposal.ActorNone)
	case b.IsAnother():
		return b.why(model.ReasonIdentityMismatch, fmt.Sprintf("at %s answers the BMC with UUID %s, and spec.bmcUUID of BMC %s (%s) is %s: nothing "+
			"is done to its servers until these agree; correct bmcUUID in Git, or where the BMC is looked for",
			rec.Address, b.Facts.UUID, b.Name, b.Manifest.Source, b.Manifest.Spec.BMCUUID), proposal.RackOperator)
	}
	return proposal.Why{}
}

// refused says why nothing is sent to a BMC at an address, nil if it may be. The client that speaks with
// the BMC checks host names, once it has resolved them.
func (s *Set) refused(b *BMC, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil //nolint:nilerr // a host name
	}
	if err := s.in.Policy.BMCNetworks.Refuse(addr, b.Target.Scheme); err != nil {
		return err
	}
	of := s.in.Policy.Tenants.At(b.Manifest.Tenant)
	if of == nil {
		return nil
	}
	if why := of.Refuse(b.Manifest.Identity()); b.Manifest.Within != "" && why != "" {
		return fmt.Errorf("spec.bmc of Server %s describes a BMC, so nothing is sent there: %s", b.Manifest.Within, why)
	}
	if !of.MayReach(addr) {
		return fmt.Errorf("%s is in none of the bmcNetworks of %s (git.tenants), so nothing is sent there: correct the address, or add %s "+
			"to them in Ingot's configuration", addr, of.Path, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return nil
}

// ip is where the BMC is, or why that is not known.
func (s *Set) ip(b *BMC) (string, proposal.Why) {
	switch e := b.Endpoint; {
	case b.Manifest.Spec.Access != nil:
		return b.Manifest.Spec.Access.IP, proposal.Why{}
	case b.Found && e.Why.Reason != "":
		return "", e.Why
	case e != nil:
		return e.IP, e.Lost()
	}
	what := "Endpoint"
	if ref := b.Manifest.Spec.EndpointRef; ref != nil {
		what += " " + ref.Name
		if why := s.devices.awaits(s.in.Desired.Endpoints[ref.Name]); why.Reason != "" {
			return "", b.why(why.Reason, what+": "+why.Message, why.Actor)
		}
	}
	return "", b.why(model.ReasonEndpointMissing, what+" is not in Git, and no device of that name was found", proposal.RackOperator)
}

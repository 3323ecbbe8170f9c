package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// bmcView is all that is known of one BMC at one moment.
type bmcView struct {
	name   model.BMCName
	spec   *model.BMC
	rec    *model.BMCRecord
	facts  *model.BMCFacts
	target model.BMCTarget
	// why says why the BMC is not usable; "" = it is.
	why        proposal.Why
	problems   []string              // of systems that cannot become servers
	duplicates []string              // systems that have the UUID of a server that is elsewhere
	lacks      bool                  // it does not show a server where that is recorded to be
	asked      bool                  // a server's Off counts only once it was read
	taken      bool                  // it is within a Server, and another BMC has its address
	swapped    bool                  // it shows another machine in the place of a server since it was read
	known      []*model.ServerRecord // of the servers that were behind it so far
	unread     proposal.Why          // why the first of its servers that cannot be read cannot

	readAt time.Time // when its own facts were last read in this process

	endpoint *endpointView // the device that it is, if it is known
	found    bool          // it was recognised by the MAC prefix database
	trial    string        // the credential of the database that is to be tried
	resume   time.Time     // when the next may be tried, if none may now
}

// endpointOf is the device that a BMC's manifest means, nil if it names none that is known.
func (f *fleet) endpointOf(spec *model.BMC) *endpointView {
	switch {
	case spec.Spec.EndpointRef != nil:
		return f.endpoint(spec.Spec.EndpointRef.Name)
	case spec.Spec.Access != nil && spec.Spec.Access.MACAddress != "":
		return f.endpointByMAC[spec.Spec.Access.MACAddress]
	}
	return nil
}

// loadBMCs puts together what is known of each BMC in Git, and of each device that
// was recognised as one, in the order of names.
func (f *fleet) loadBMCs() {
	d := f.in.Desired
	m := f.memory
	all := anew(m.room.bmcs, len(d.BMCs)+len(f.endpoints))[:0]
	names := m.bmcs.of(d.BMCs)
	manifests := m.bmcManifests.of(names, d.BMCs)
	for i, name := range names {
		all = append(all, bmcView{name: name, spec: manifests[i], endpoint: f.endpointOf(manifests[i])})
	}
	for _, v := range f.endpoints {
		if v.bmc {
			all = append(all, bmcView{name: model.BMCName(v.name), spec: v.manifest(), endpoint: v, found: true})
		}
	}
	m.room.bmcs = all
	f.bmcs = make([]*bmcView, len(all))
	for i := range all {
		f.bmcs[i] = &all[i]
	}
	if len(all) > len(names) {
		slices.SortFunc(f.bmcs, func(a, b *bmcView) int { return strings.Compare(string(a.name), string(b.name)) })
		names = make([]model.BMCName, len(f.bmcs))
		for i, b := range f.bmcs {
			names[i] = b.name
		}
	}
	f.bmcAt = m.bmcPlaces.of(names)
	records, facts := m.bmcRecords.of(names, f.in.Observed.BMCs), m.bmcFacts.of(names, f.in.Observed.BMCFacts)
	read := m.bmcRead.of(names, f.in.BMCRead)
	for i, b := range f.bmcs {
		b.rec, b.facts, b.readAt = records[i], facts[i], read[i]
		if b.rec == nil {
			b.rec = &model.BMCRecord{Name: b.name}
		}
		b.target, b.why = f.bmcTarget(b)
		if problem := f.withinProblem(b); problem != "" {
			b.problems = append(b.problems, problem)
		}
		if uuid := b.spec.Spec.BMCUUID; uuid != "" && b.facts != nil && b.facts.UUID == "" {
			b.problems = append(b.problems, fmt.Sprintf("it shows no UUID, so spec.bmcUUID %s (%s) cannot be compared", uuid, b.spec.Source))
		}
	}
	f.noteTaken()
}

// manifest is the BMC that a person would have written for a device.
func (v *endpointView) manifest() *model.BMC {
	b := &model.BMC{Meta: model.Meta{Name: v.name}, Spec: model.BMCSpec{
		EndpointRef: &model.LocalRef{Name: v.name}, BMCSecretRef: model.LocalRef{Name: v.name},
	}}
	if v.entry != nil {
		b.Spec.Protocol, b.Spec.ConsoleProtocol = v.entry.Protocol, v.entry.Console
	}
	return b
}

// bmcTarget is how the BMC is reached, and why its servers must wait, if so:
// because it cannot be reached, or was not looked at since its address changed,
// for another machine may have taken that address (B34).
func (f *fleet) bmcTarget(b *bmcView) (model.BMCTarget, proposal.Why) {
	t := model.BMCTarget{
		Name: b.name, Scheme: b.spec.Spec.Protocol.Scheme, Fingerprint: b.rec.Fingerprint, Hostname: b.spec.Spec.Hostname,
		TLSMinimum: b.spec.Annotations[model.AnnotationTLSMinimum],
	}
	if t.Scheme == "" {
		t.Scheme = "https"
	}
	since := b.rec.Since
	if b.spec.Annotations[model.AnnotationOperation] == model.OperationIgnore {
		return t, proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Since: since, Actor: proposal.RackOperator}
	}
	ip, why := f.bmcIP(b)
	if why.Reason != "" {
		return t, why
	}
	if why := f.mayBe(b, ip, t.Scheme, since); why.Reason != "" {
		return t, why
	}
	t.Address = b.spec.Spec.Protocol.Address(ip)
	if why := f.credentials(b, &t); why.Reason != "" {
		return t, why
	}
	switch {
	case b.rec.Reason == model.ReasonAuthenticationFailed && b.trial != "":
		return t, proposal.Why{Reason: model.ReasonAuthenticationFailed, Message: b.refusals() + "; the next is tried", Since: since, Actor: proposal.ActorNone}
	case b.rec.Reason != "":
		return t, proposal.Why{Reason: b.rec.Reason, Message: b.rec.LastError, Since: since, Actor: proposal.RackOperator}
	case b.facts == nil || b.rec.Address == "":
		return t, proposal.Why{Reason: model.ReasonPending, Message: "the BMC has not answered yet", Since: since, Actor: proposal.ActorNone}
	case b.rec.Address != t.Address:
		return t, proposal.Why{Reason: model.ReasonPending, Message: fmt.Sprintf("its address is %s now, no longer %s: what answers there is checked first", t.Address, b.rec.Address), Since: since, Actor: proposal.ActorNone}
	}
	return t, b.namedOtherwise()
}

// mayBe says why a BMC is not spoken to by scheme at an address, if so. Names are
// looked at once they are resolved, by the client that speaks with the BMC.
func (f *fleet) mayBe(b *bmcView, ip, scheme string, since time.Time) proposal.Why {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return proposal.Why{}
	}
	if err = f.in.Policy.BMCNetworks.Refuse(addr, scheme); err == nil {
		err = f.mayReach(b, addr)
	}
	if err != nil {
		return proposal.Why{Reason: model.ReasonAddressNotAllowed, Message: err.Error(), Since: since, Actor: proposal.RackOperator}
	}
	return proposal.Why{}
}

// bmcIP is where the BMC is.
func (f *fleet) bmcIP(b *bmcView) (string, proposal.Why) {
	since := b.rec.Since
	ref := b.spec.Spec.EndpointRef
	switch v := b.endpoint; {
	case b.spec.Spec.Access != nil:
		return b.spec.Spec.Access.IP, proposal.Why{}
	case ref == nil:
		return "", proposal.Why{Reason: model.ReasonEndpointMissing, Message: "Endpoint is not in Git, and no device of that name was found", Since: since, Actor: proposal.RackOperator}
	case v == nil:
		return "", f.noEndpoint(ref.Name, since)
	case b.found && v.why.Reason != "":
		return "", v.why
	case v.ip == "":
		return "", v.addressLost()
	}
	return b.endpoint.ip, proposal.Why{}
}

// noEndpoint says why the Endpoint that a BMC names is no device that is known.
func (f *fleet) noEndpoint(name string, since time.Time) proposal.Why {
	if why := f.awaits(f.in.Desired.Endpoints[name]); why.Reason != "" {
		return proposal.Why{Reason: why.Reason, Message: "Endpoint " + name + ": " + why.Message, Since: since, Actor: why.Actor}
	}
	return proposal.Why{Reason: model.ReasonEndpointMissing, Message: "Endpoint " + name + " is not in Git, and no device of that name was found", Since: since, Actor: proposal.RackOperator}
}

// addressLost says that nobody knows where a device is.
func (v *endpointView) addressLost() proposal.Why {
	why := proposal.Why{Reason: model.ReasonAddressLost, Message: "its address was given to another device; it is waited for until it asks for one again", Since: v.rec.Since, Actor: proposal.RackOperator}
	if v.lost != "" {
		why.Message = "its address was given to " + v.lost + "; it is waited for until it asks for one again"
	}
	return why
}

// planBMCs plans the reading of BMCs that were not read yet, whose last reading
// failed, whose address changed, or whose facts are old.
func (f *fleet) planBMCs(r *Result) {
	for _, b := range f.bmcs {
		r.wake(b.resume)
		if f.in.BusyBMCs[b.name] || !b.readable() {
			continue
		}
		if due := f.bmcDue(b); !b.retryAsked() && f.in.Now.Before(due) {
			r.wake(due)
			continue
		}
		rec := b.retried()
		target := b.target
		target.Fingerprint, target.Retry = rec.Fingerprint, b.retryAsked()
		rec.Address = target.Address
		m := &BMCMove{Target: target, Then: rec, Credential: b.trial}
		m.was = knownBMC{old: f.in.Observed.BMCs[b.name], all: f.in.Observed.BMCFacts, policy: &f.in.Policy, uuid: b.spec.Spec.BMCUUID}
		if b.trial != "" {
			m.Endpoint = b.endpoint.name
			m.was.endpoint = f.in.Observed.Endpoints[m.Endpoint]
		}
		if b.rec.Address != "" && b.rec.Address != target.Address && !b.retryAsked() {
			m.Known = b.facts
		}
		r.Readings[b.name] = m
	}
}

// readable reports whether the BMC may be read, as far as its manifest and address go.
func (b *bmcView) readable() bool {
	switch {
	case b.taken, b.target.Address == "", b.found && b.endpoint.rec != b.endpoint.old:
		return false
	case b.spec.Annotations[model.AnnotationOperation] == model.OperationIgnore:
		return false
	}
	return b.target.Username != "" || !b.target.Password.IsZero()
}

// bmcDue is when the BMC's own facts are to be read next. What contradicts what is
// recorded of its servers is looked at again within seconds, and for as long as it does
// as often as servers are.
func (f *fleet) bmcDue(b *bmcView) time.Time {
	again, unconfirmed := f.in.Unconfirmed[b.name]
	again = again.Add(f.in.Policy.SettleMax)
	pause := f.pauseEnd(b.rec.NotBefore, f.in.Policy.BackoffMax)
	switch {
	case b.rec.Reason != "" && f.remedied(b):
		return f.in.Now
	case b.rec.Reason != "" && again.Before(pause):
		return pause
	case unconfirmed:
		return again
	case b.swapped || b.asked || b.rec.Reason != "" || b.facts == nil || b.rec.Address != b.target.Address || b.unpinned():
		return f.in.Now
	case b.lacks || b.isAnother():
		return b.readAt.Add(f.in.Policy.PollInterval)
	}
	every := f.in.Policy.RefreshInterval
	return b.readAt.Add(every - time.Duration(proposal.Jitter(b.name)/5*float64(every)))
}

// unpinned reports whether the certificate of a BMC is still to be pinned: another one than
// Git named then was read there, and Git names that one now.
func (b *bmcView) unpinned() bool {
	return b.rec.Fingerprint == "" && b.facts.Fingerprint != "" && !b.isAnother()
}

// remedied reports whether, since the BMC was last asked in vain, its device was
// seen at another address, or Git named its credentials in place of refused ones.
func (f *fleet) remedied(b *bmcView) bool {
	if b.endpoint == nil {
		return false
	}
	asked := b.rec.NotBefore.Add(-proposal.Backoff(b.name, b.rec.Failures, f.in.Policy))
	rec := b.endpoint.rec
	moved := b.rec.Address != b.target.Address && rec.Since.After(asked)
	refused := len(rec.RefusedAt) > 0 && rec.RefusedAt[len(rec.RefusedAt)-1].Equal(asked)
	return moved || refused && !b.target.Default
}

// retryAsked reports whether Git asks anew for the BMC to be tried again.
func (b *bmcView) retryAsked() bool {
	name, value := b.spec.Operation()
	return name == model.OperationRetry && value != b.rec.HandledOperation
}

// retried is the record for the next reading. The certificate that was pinned is forgotten
// when Git asks for a retry anew, and when another one is shown and the pinned one is that of
// another BMC than Git names by its UUID.
func (b *bmcView) retried() *model.BMCRecord {
	rec := *b.rec
	if b.retryAsked() {
		_, rec.HandledOperation = b.spec.Operation()
		rec.Fingerprint = ""
	}
	if b.rec.Reason == model.ReasonCertificateChanged && b.isAnother() {
		rec.Fingerprint = ""
	}
	return &rec
}

// Package bmcs decides about BMCs and the devices on their networks: where each is, and how and when it is read.
package bmcs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// BMC is all that is known of one BMC, in Git or found on the network.
type BMC struct {
	Name     model.BMCName
	Manifest *model.BMC // made up for one that was Found
	Found    bool       // recognised by the MAC prefix database
	Record   *model.BMCRecord
	Facts    *model.BMCFacts // nil = it was never read
	Endpoint *Endpoint       // the device that it is, nil if that is not known
	// Target is how it is reached. Nothing is sent to it while the address is empty.
	Target model.BMCTarget
	Why    proposal.Why // why it cannot be used
	ReadAt time.Time    // when this process last read it

	// Problems are why systems of it cannot become servers, Duplicates its systems with the UUID of another server.
	Problems, Duplicates []string

	credentials string // the fingerprint of those in Target; "" = they are only tried, or there is no key

	reread Reread    // how soon its servers need another reading
	taken  bool      // it is within a Server, and another BMC has its address
	trial  string    // the credential of the MAC prefix database that is tried next
	resume time.Time // when the next credential may be tried, if none may be now
}

// Reread is how soon a BMC is read again.
type Reread int

// The times of the next reading.
const (
	RereadInTime Reread = iota // at each RefreshInterval
	RereadOften                // at each PollInterval, because it contradicts the record of a server
	RereadNow                  // because a decision waits for it
)

// Needs notes that a server needs another reading.
func (b *BMC) Needs(r Reread) { b.reread = max(b.reread, r) }

// IsUnasked reports whether the BMC has not answered yet, and no problem is known.
func (b *BMC) IsUnasked() bool { return b.Facts == nil && b.Why.Reason == model.ReasonPending }

// DuplicateAdvice says what to do about two machines of one UUID.
const DuplicateAdvice = "if it is one machine behind two BMCs, take one of them out of Git; " +
	"if there are two, give the one that is newer here a UUID of its own with its vendor's tool"

// Console says where the consoles of its servers are.
func (b *BMC) Console() string {
	if c := b.Manifest.Spec.ConsoleProtocol; c != nil {
		return fmt.Sprintf("its console is that of BMC %s (%s, port %d)", b.Name, c.Name, c.Port)
	}
	return "its console is that of BMC " + string(b.Name)
}

// why is a reason that holds since the state of the BMC changed last.
func (b *BMC) why(reason, message string, actor proposal.Actor) proposal.Why {
	return proposal.Why{Reason: reason, Message: message, Since: b.Record.Since, Actor: actor}
}

func (b *BMC) isIgnored() bool {
	return b.Manifest.Annotations[model.AnnotationOperation] == model.OperationIgnore
}

func (s *Set) load(b *BMC) {
	b.Record = cmp.Or(s.in.Observed.BMCs[b.Name], &model.BMCRecord{Name: b.Name})
	b.Facts, b.ReadAt = s.in.Observed.BMCFacts[b.Name], s.in.Read[b.Name]
	b.Why = s.reach(b)
	if problem := s.withinProblem(b); problem != "" {
		b.Problems = append(b.Problems, problem)
	}
	if until := b.startsUntil(s.in.Policy); s.in.Now.Before(until) {
		b.Problems = append(b.Problems, fmt.Sprintf("it may lack a system, a UUID or a reset action because it or a host is starting: it is read again every %s until %s",
			seconds(s.in.Policy.PollInterval), text.Time(until)))
	}
	if uuid := b.Manifest.Spec.BMCUUID; uuid != "" && b.Facts != nil && b.Facts.UUID == "" {
		b.Problems = append(b.Problems, fmt.Sprintf("it shows no UUID, so spec.bmcUUID %s (%s) cannot be compared", uuid, b.Manifest.Source))
	}
}

// Input is all that a Set is made from. Its contents stay unchanged.
type Input struct {
	Desired  *model.Desired
	Observed *model.Observed
	Policy   *policy.Options
	// DigestKey makes the fingerprints of accepted credentials.
	DigestKey model.DigestKey
	Now       time.Time
	Read      map[model.BMCName]time.Time // when this process last read each BMC
	// Unconfirmed is when a BMC first contradicted the records of its servers. A second reading must confirm it.
	Unconfirmed map[model.BMCName]time.Time
	Busy        map[model.BMCName]bool // BMCs that are being read
	Outdated    bool                   // Desired may lack objects, because a newer revision was applied before
}

// mayLack reports whether Git may have an object of this kind and name that Desired lacks; "" is any name.
func (in *Input) mayLack(kind model.Kind, name string) bool {
	return in.Outdated || in.Desired.MaybeUnreadable(kind, name)
}

// foundSecret is the BMCSecret in Git of a BMC that was found on the network, if its tenant may define that BMC.
func (in *Input) foundSecret(name string) *model.BMCSecret {
	secret, tenants := in.Desired.BMCSecrets[name], in.Policy.Tenants
	if secret == nil || len(tenants) == 0 {
		return secret
	}
	if of := tenants.At(secret.Tenant); of == nil || of.Refuse(model.Identity{Kind: model.KindBMC, Name: name}) != "" {
		return nil
	}
	return secret
}

// Set is all BMCs and devices of a fleet.
type Set struct {
	BMCs    []*BMC // in the order of names
	in      *Input
	byName  map[model.BMCName]*BMC
	devices *devices

	accepted map[string]bool // by the fingerprints in the records; made when first needed
}

// Load makes the Set of each BMC in Git, each device, and each BMC that was found on the network.
func Load(in *Input) *Set {
	devices := loadDevices(in)
	names := slices.AppendSeq(make([]model.BMCName, 0, len(in.Desired.BMCs)), maps.Keys(in.Desired.BMCs))
	for _, e := range devices.all {
		if e.IsBMC {
			names = append(names, model.BMCName(e.Name))
		}
	}
	slices.Sort(names)
	values, all := make([]BMC, len(names)), make([]*BMC, len(names))
	for i, name := range names {
		all[i] = &values[i]
		if manifest := in.Desired.BMCs[name]; manifest != nil {
			values[i] = BMC{Name: name, Manifest: manifest, Endpoint: devices.of(manifest)}
		} else {
			e := devices.byName[string(name)]
			values[i] = BMC{Name: name, Manifest: e.bmcManifest(), Endpoint: e, Found: true}
		}
	}
	s := &Set{BMCs: all, in: in, byName: make(map[model.BMCName]*BMC, len(all)), devices: devices}
	for _, b := range all {
		s.byName[b.Name] = b
		s.load(b)
	}
	s.noteTaken()
	return s
}

// Named is the BMC of a name, nil if there is none.
func (s *Set) Named(name model.BMCName) *BMC { return s.byName[name] }

// DescribedBy is the BMC in Git that describes the device of a name, "" if none does.
func (s *Set) DescribedBy(device string) model.BMCName {
	if e := s.devices.byName[device]; e != nil {
		return e.DescribedBy
	}
	return ""
}

// Endpoints are all devices and the Endpoints in Git whose devices are not known, in the order of names.
func (s *Set) Endpoints() []*Endpoint {
	all := slices.Clone(s.devices.all)
	for name, m := range s.in.Desired.Endpoints {
		if why := s.devices.awaits(m); why.Reason != "" {
			all = append(all, &Endpoint{Name: name, MAC: m.Spec.MACAddress, IP: m.Spec.IP, Manifest: m, Why: why})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// Proposal is what is saved and read now.
type Proposal struct {
	proposal.Changes
	Readings map[model.BMCName]*Reading
	Wake     time.Time // of the next reading; zero = none by time
}

// Propose returns the changed records of devices and the readings that are due.
func (s *Set) Propose() Proposal {
	p := Proposal{Readings: make(map[model.BMCName]*Reading)}
	s.devices.propose(&p.Changes)
	for _, b := range s.BMCs {
		p.Wake = proposal.Earlier(p.Wake, b.resume)
		if s.in.Busy[b.Name] || !b.readable() {
			continue
		}
		if due := s.due(b); !b.retryAsked() && s.in.Now.Before(due) {
			p.Wake = proposal.Earlier(p.Wake, due)
			continue
		}
		p.Readings[b.Name] = s.reading(b)
	}
	return p
}

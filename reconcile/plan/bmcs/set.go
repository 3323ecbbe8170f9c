package bmcs

import (
	"maps"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// Input is all that a Set is made from. Its contents stay unchanged.
type Input struct {
	Desired  *model.Desired
	Observed *model.Observed
	Policy   *policy.Options
	Now      time.Time
	// Read is when this process last read each BMC.
	Read map[model.BMCName]time.Time
	// Unconfirmed is when a BMC first contradicted the records of its servers. A second reading must confirm it.
	Unconfirmed map[model.BMCName]time.Time
	Busy        map[model.BMCName]bool // BMCs that are being read
	// Outdated is set if a newer revision than Desired was applied before, so that Desired may lack objects.
	Outdated bool
}

// mayLack reports whether Git may have an object of this kind and name that Desired lacks; "" is any name.
func (in *Input) mayLack(kind model.Kind, name string) bool {
	return in.Outdated || proposal.MaybeUnreadable(in.Desired, kind, name)
}

// foundSecret is the BMCSecret in Git of a BMC that was found on the network, nil if there is none. It
// must belong to a tenant who may define that BMC.
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
			all = append(all, &Endpoint{Name: name, IP: m.Spec.IP, Manifest: m, Why: why})
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

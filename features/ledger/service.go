package ledger

import (
	"slices"
	"time"

	"ingot/model"
)

// service is that a server is to be out of service, by its annotation or a ServerMaintenance.
type service struct {
	by     string // the ServerMaintenance, "" = the annotation
	server string
	power  model.Power
	// asks is set for one that waits for the owner of the server's claim, approved once that
	// has agreed while the machine was the claim's: it has begun, and ends with its manifest.
	asks, approved bool
	// leftOn is set for one that asks, and left the server on long enough for its owner to be
	// shown that: its name alone approves no more. wasOff is set for one that had it Off before.
	leftOn, wasOff bool
	since          time.Time
	// until is when it was taken back, and had to be carried out by; zero = it was not.
	until time.Time
}

// holds reports whether it may be carried out at a time.
func (s *service) holds(at time.Time) bool { return s.until.IsZero() || at.Before(s.until) }

// notePark keeps whether a server's annotation has it left alone, switched off.
func (b *Book) notePark(server *model.Server, gone bool, at time.Time) {
	if !gone && operation(server.Annotations[model.AnnotationOperation]) == model.OperationPark {
		b.serve(&service{server: server.Name, power: model.PowerOff}, at)
		return
	}
	b.endService("", server.Name, at)
}

// noteMaintenance keeps what a ServerMaintenance asks for, now that it is another.
func (b *Book) noteMaintenance(m *model.ServerMaintenance, gone bool, at time.Time) {
	if gone {
		b.endService(m.Name, "", at)
		return
	}
	now := &service{
		by: m.Name, server: m.Spec.ServerRef.Name, power: model.PowerOff, asks: m.Spec.Policy == model.MaintenanceOwnerApproval,
	}
	if m.Spec.ServerPower == model.PowerOn {
		now.power = model.PowerOn
	}
	b.serve(now, at)
}

// serve has a service take the place of the one that it is another form of. If that has begun,
// it goes on as the new one, which needs no approval.
func (b *Book) serve(now *service, at time.Time) {
	now.since = at
	for _, s := range b.services {
		if s.by == now.by && s.server == now.server && s.until.IsZero() {
			now.wasOff = s.wasOff || s.power == model.PowerOff && (s.approved || !s.asks)
			now.leftOn = s.leftOn || s.asks && s.power == model.PowerOn && !now.wasOff && at.After(s.since.Add(b.grace))
			now.approved = (s.approved || !s.asks) && (now.power == model.PowerOn || !now.leftOn)
		}
	}
	server := ""
	if now.by == "" {
		server = now.server
	}
	b.endService(now.by, server, at)
	b.services = append(b.services, now)
}

// endService takes back the service by a ServerMaintenance, or by the annotation of a server: what
// was decided upon may still be carried out for a while.
func (b *Book) endService(by, server string, at time.Time) {
	for _, s := range b.services {
		if s.by == by && (server == "" || s.server == server) && s.until.IsZero() {
			s.until = at.Add(b.grace)
		}
	}
}

// noteApprovals keeps which services the owners of their machines agree to.
func (b *Book) noteApprovals() {
	for _, m := range b.machines {
		names := b.serversOf(m)
		for _, s := range b.services {
			s.approved = s.approved || s.until.IsZero() && slices.Contains(names, s.server) && b.agrees(m, s)
		}
	}
}

func (b *Book) agrees(m *machine, s *service) bool {
	return slices.ContainsFunc([]model.ClaimName{m.owner, m.other}, func(name model.ClaimName) bool {
		var asShown, anyPower bool
		switch o := b.force.objects[name.Identity()].Object.(type) {
		case *model.ServerClaim:
			asShown, anyPower = o.Approves(s.by)
		case *model.ServerBootConfiguration:
			asShown, anyPower = o.Claim().Approves(s.by)
		}
		return anyPower || asShown && (s.power == model.PowerOn || !s.leftOn)
	})
}

// serviced reports whether a service of a machine brings it to a power state. One that asks the
// owner of a claim need not where no claim has the machine.
func (b *Book) serviced(m *machine, power model.Power, at time.Time) bool {
	names := b.serversOf(m)
	return slices.ContainsFunc(b.services, func(s *service) bool {
		return s.power == power && s.holds(at) && slices.Contains(names, s.server) &&
			(!s.asks || s.approved || m.owner == "" || b.agrees(m, s))
	})
}

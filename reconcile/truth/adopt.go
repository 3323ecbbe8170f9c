package truth

import "ingot/model"

// Adoption is the records that count after a start, as far as the store does not hold them.
type Adoption struct {
	// Records must be written, nil = none. With Only, all others must be deleted.
	Records *model.Records
	Only    bool
}

// Adopt returns what a verdict makes of the records of store and head.
func Adopt(v Verdict, store, head *model.Records) Adoption {
	switch {
	case v.From == FromHead:
		all := *head
		if v.Recover {
			all.Servers = recovered(head.Servers, nil)
		}
		return Adoption{&all, true}
	case v.Fill:
		fleet := store.Fleet
		if fleet.Applied.IsZero() {
			fleet = head.Fleet
		}
		return Adoption{Records: &model.Records{
			Fleet: fleet, Servers: recovered(head.Servers, store.Servers), BMCs: missing(store.BMCs, head.BMCs),
			Claims: missing(store.Claims, head.Claims), Endpoints: missing(store.Endpoints, head.Endpoints),
		}}
	}
	return Adoption{}
}

func missing[N ~string, R any](store, head map[N]*R) map[N]*R {
	lost := make(map[N]*R)
	for name, rec := range head {
		if store[name] == nil {
			lost[name] = rec
		}
	}
	return lost
}

func recovered(head, store map[model.ServerName]*model.ServerRecord) map[model.ServerName]*model.ServerRecord {
	lost := missing(store, head)
	for name, rec := range lost {
		lost[name] = Recover(rec)
	}
	return lost
}

// Recover marks what may have happened to a server after the head was pushed: the outcome of an open
// operation is unknown, a wipe begins again, a server that a maintenance switches on once may have been
// switched off by hand, and a bound server may have been installed.
func Recover(rec *model.ServerRecord) *model.ServerRecord {
	c := *rec
	if c.Settled() == model.StateCleanup && c.Boot.Ticket.Open() {
		ended := *c.Boot.Ticket
		ended.Ended = model.TicketSpent
		c.Boot.Ticket = &ended
	}
	if o := c.Requests.Operation; o != nil && o.Outcome == "" {
		lost := *o
		lost.Outcome, lost.Message = model.OutcomeUnknown, "its outcome was lost with the store, so it is not known whether it was requested"
		c.Requests.Operation = &lost
	}
	if p := c.Maintenance.Power; p != nil && p.Due && p.Want == model.PowerOn {
		c.Maintenance.Power = &model.MaintenancePower{Want: p.Want}
	}
	settled := c.Settled()
	if (settled == model.StateReserved || settled == model.StateReleased) && (c.Install.Digest == "" || c.Install.Reprovision != "") {
		c.Install.Reprovision = ""
		c.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, SeenOn: c.Doubt != nil && c.Doubt.SeenOn}
	}
	return &c
}

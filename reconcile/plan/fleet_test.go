package plan_test

import (
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// Short names of fixtures that tables use often.
var (
	annotated  = fleettest.Annotated
	bigFleet   = plantest.BigFleet
	claim      = fleettest.Claim
	claimWhy   = plantest.ClaimWhy
	macs       = fleettest.MACs
	ticketed   = plantest.Ticketed
	uuidOf     = fleettest.UUIDOf
	waiting    = plantest.Waiting
	wipedDisks = fleettest.WipedDisks
)

// first is the name of the first server of bigFleet and ticketed.
const first = model.ServerName("bmc00000-system-0")

type (
	input  = world.Input
	record = model.ServerRecord
)

// change is one row's difference from the fleet that a table begins with.
type change = func(in *input, rec *record)

// serving is a fleet of one server, which serves a claim.
func serving(changes ...change) (*input, *record) {
	in := bigFleet(1, 1)
	all(changes...)(in, in.Observed.Servers[first])
	return in, in.Observed.Servers[first]
}

// all makes changes one after the other. nil changes nothing.
func all(changes ...change) change {
	return func(in *input, rec *record) {
		for _, change := range changes {
			if change != nil {
				change(in, rec)
			}
		}
	}
}

func off(in *input, rec *record) { in.Observed.ServerFacts[rec.Name].Power = model.PowerOff }

func state(s model.ServerState) change { return func(_ *input, rec *record) { rec.Life.State = s } }

// serviced has a bound server be in maintenance.
func serviced(_ *input, rec *record) {
	rec.Life.State, rec.Life.Back = model.StateMaintenance, model.StateReserved
}

// toBeServiced has a ServerMaintenance for a server in Git.
func toBeServiced(in *input, rec *record) {
	in.Desired.Add(&model.ServerMaintenance{
		Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(rec.Name)}},
	})
}

// mayBeInstalled has a server whose install is in doubt.
func mayBeInstalled(in *input, rec *record) {
	rec.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Since: in.Now}
}

// ticket has a server without an install have an open ticket for the boot of its claim.
func ticket(purpose model.TicketPurpose) change {
	return func(in *input, rec *record) {
		rec.Install.Digest = ""
		rec.Boot.Ticket = &model.Ticket{
			ID: "t", Claim: rec.Claim.Name, Purpose: purpose, Digest: booting.BootDigest(proposal.Boot{Image: "os:1"}), ArmedAt: in.Now,
		}
	}
}

// reported has a server have reported that it booted with ticket t.
func reported(in *input, rec *record) {
	in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: in.Now}
}

// served has a ticket's Ignition have been served some time ago.
func served(ago time.Duration) change {
	return func(in *input, rec *record) { rec.Boot.Ticket.IgnitionAt = in.Now.Add(-ago) }
}

// fetched has the server of ticket t have fetched its Ignition just now.
func fetched(in *input, rec *record) {
	in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", ScriptAt: in.Now, IgnitionAt: in.Now}
}

// awaitingOff has a ticket wait for its server to be off.
func awaitingOff(_ *input, rec *record) { rec.Boot.Ticket.AwaitingOff = true }

// outdated has Git be at another commit than the one applied.
func outdated(in *input, _ *record) {
	in.Desired.KeptOverRestart, in.Observed.Fleet.Applied = true, model.Applied{Branch: "main", Commit: "2"}
}

// readAs changes the readings of a server.
func readAs(edit func(r *reading.State)) change {
	return func(in *input, rec *record) {
		r := in.Readings[rec.Name]
		edit(&r)
		in.Readings[rec.Name] = r
	}
}

// progressed has seen a server boot with ticket t.
func progressed(p model.Progress) change {
	return func(in *input, rec *record) {
		p.Ticket = "t"
		in.Observed.Progress[rec.Name] = &p
	}
}

// step is what a plan does with one server.
type step struct {
	*plan.Server
	*plan.Move
	After *record // once the move is done
}

// stepOf plans, and returns what is done with a server.
func stepOf(in *input, name model.ServerName) step {
	r := plan.Plan(in)
	i := slices.IndexFunc(r.Servers, func(s *plan.Server) bool { return s.Name == name })
	server := *r.Servers[i]
	if server.Why.Reason == model.ReasonInProgress {
		server.Why = proposal.Why{} // it waits for nothing
	}
	s := step{Server: &server, Move: r.Moves[name], After: server.Record}
	if s.Move != nil {
		s.After = s.Then
	}
	return s
}

// does says what is done beyond reading.
func (s step) does() string {
	if s.Move == nil || !slices.ContainsFunc(s.Do, func(a proposal.Action) bool { _, reads := a.(proposal.Inspect); return !reads }) {
		return ""
	}
	return moveText(s.Move)
}

// recordsOnly reports whether there is a move that changes the record alone.
func (s step) recordsOnly() bool { return s.Move != nil && len(s.Do) == 0 }

func moveText(m *plan.Move) string {
	var all []string
	for _, a := range m.Do {
		all = append(all, a.String())
	}
	return strings.Join(all, ", then ")
}

package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/progress"
)

// Moment is what all servers of one plan share. Nothing changes it, except for assumed.
type Moment struct {
	Now, Started, Serving time.Time // as in the Input
	LongGap               bool      // decisions may be lost that are newer than all that is known
	Policy                *policy.Options
	Desired               *model.Desired
	Observed              *model.Observed
	DigestKey             model.DigestKey
	Outrun                map[model.ClaimName]bool         // the claims whose new name another server has
	Aliases               map[string]model.ServerName      // what Git calls servers that Ingot knows by another name
	Unknown               string                           // the token of FleetRecord.UnknownToken, as of this plan
	Conditions            map[model.ServerName][]RuleTaint // what ServerReadinessRules keep on servers
	InstallsLeft          int                              // the places of MaxConcurrentInstalls when the plan began
	Unannounced           time.Time                        // since when the status branch cannot be pushed; zero = it can
	Unpushed              bool                             // this process has not pushed the status branch yet
	assumed               string                           // the architecture of servers of which it is unknown; see ArchitectureOf
}

// RuleTaint is the taint that a ServerReadinessRule keeps on a server.
type RuleTaint struct {
	model.Taint
	Rule  string
	Unmet string // the conditions that do not hold, with their statuses
}

// BMCView is what counts of a server's BMC.
type BMCView struct {
	Known     bool      // its facts were read
	Firmware  string    // its version; "" = not known
	LastReset time.Time // when it was restarted last, as far as it says
	ReadAt    time.Time // when its own facts were read last in this process
	Console   string    // where the consoles of its servers are
}

// Service is what takes a server out of service.
type Service struct {
	By     string // the ServerMaintenance in force, or OperationPark; "" = nothing does
	Why    string
	Power  model.Power // the power state that it begins with
	Awaits string      // the ServerMaintenance that waits for the owner of its claim
}

// Server is what is known of one server at one moment. It never changes: With and Change return another one.
type Server struct {
	*Moment
	Name     model.ServerName
	Manifest *model.Server       // nil = Git has none
	Record   *model.ServerRecord // with the changes of the proposal that is being made
	Stored   *model.ServerRecord // as it is kept; nil for a new server
	Facts    *model.ServerFacts
	Reading  *reading.State
	BMC      BMCView
	Claim    *model.ServerClaim // that it is bound to, if that is in force
	Renamed  *model.ServerClaim // what its claim is called now
	Adopts   *model.ServerClaim // the claim without a server that its manifest names
	Binds    *model.ServerClaim // the claim that this plan has chosen for it
	Service  Service
	// Blocked says why it cannot be reached, or must not be; Duplicate that another machine
	// has its UUID; Contradicted that it does not match its manifest.
	Blocked, Duplicate, Contradicted Why
	Outdated                         bool // its claim asks for something else than was installed
	Busy                             bool // a move of it is under way
	Shown                            bool // the status branch shows its newest decision, or does not have to
	Edited                           bool // Record was changed by the proposal that is being made
}

// Changed returns a changed copy of a value that others may hold.
func Changed[T any](old *T, change func(next *T)) *T {
	next := *old
	change(&next)
	return &next
}

// With returns the server with another record.
func (s *Server) With(rec *model.ServerRecord) *Server {
	next := *s
	next.Record, next.Edited = rec, true
	return &next
}

// Change returns the server with a changed copy of its record.
func (s *Server) Change(change func(rec *model.ServerRecord)) *Server {
	return s.With(Changed(s.Record, change))
}

// State is where it is in its life.
func (s *Server) State() model.ServerState { return s.Record.Life.State }

// Power is the power state that was read last.
func (s *Server) Power() model.Power { return s.Facts.Power }

// Ticket is its newest boot ticket, nil if there is none.
func (s *Server) Ticket() *model.Ticket { return s.Record.Boot.Ticket }

// Progress is how far it has come with its ticket, nil if nowhere.
func (s *Server) Progress() *model.Progress { return s.Observed.ProgressOf(s.Record) }

// Trace is what is known of its boot.
func (s *Server) Trace() model.BootTrace { return s.Observed.BootOf(s.Record) }

// TicketState is how far its ticket was used.
func (s *Server) TicketState() model.TicketState { return s.Ticket().State(s.Progress()) }

// Annotation returns an annotation of its manifest.
func (s *Server) Annotation(key string) string {
	if s.Manifest == nil {
		return ""
	}
	return s.Manifest.Annotations[key]
}

// ClaimAnnotation returns an annotation of its claim.
func (s *Server) ClaimAnnotation(key string) string {
	if s.Claim == nil {
		return ""
	}
	return s.Claim.Annotations[key]
}

// Requested is the operation that Git asks for, and the annotation's whole value.
func (s *Server) Requested() (name, value string) {
	if s.Manifest == nil {
		return "", ""
	}
	return s.Manifest.Operation()
}

// NewOperation is a value of the operation annotation that is a new request.
func NewOperation(s *Server, name string) string {
	for n := 1; ; n++ {
		v := fmt.Sprintf("%s#%d", name, n)
		if !WasHandled(s.Record, AskedOperation, v) {
			return v
		}
	}
}

// RetryText is the annotation that requests a retry, as people write it.
func RetryText(s *Server) string {
	return fmt.Sprintf("annotation %s: %s on Server %s", model.AnnotationOperation, NewOperation(s, model.OperationRetry), s.Name)
}

// Opened reports whether it has an open ticket of a purpose.
func (s *Server) Opened(purpose model.TicketPurpose) bool {
	return s.Ticket().Open() && s.Ticket().Purpose == purpose
}

// AwaitsOff reports whether it has an open ticket of a purpose that waits for it to be off.
func (s *Server) AwaitsOff(purpose model.TicketPurpose) bool {
	return s.Opened(purpose) && s.Ticket().AwaitingOff
}

// Begun reports whether it was powered on with its newest ticket. A power-on of the future, by its clock, is older.
func (s *Server) Begun() bool {
	asked, t := s.Record.Power.Asked, s.Ticket()
	if t == nil || asked == nil || asked.Want != model.PowerOn || asked.At.Before(t.ArmedAt) {
		return false
	}
	return !asked.At.After(s.Now) || t.ArmedAt.After(s.Now)
}

// Reached reports whether the power state that was last asked for was read since.
func (s *Server) Reached() bool {
	return s.Reading.Reached || s.Record.Power.Asked != nil && s.Record.Power.Asked.Reached
}

// Starting reports whether a power-on was asked for that was not seen to take effect.
func (s *Server) Starting() bool {
	a := s.Record.Power.Asked
	return a != nil && a.Want == model.PowerOn && !s.Reached()
}

// StaysOff says that it did not power on when it was asked to; "" = it did, or may yet.
func (s *Server) StaysOff() string {
	a := s.Record.Power.Asked
	if !s.Starting() || s.Settling() || a.Unsure || a.At.After(s.Now) || s.Power() != model.PowerOff {
		return ""
	}
	says := "it was asked to power on at " + text.Time(a.At) + ", and stays Off"
	if a.Problem != "" {
		says += ": " + a.Problem
	}
	return says
}

// BootText says how far its boot came, and where to look.
func (s *Server) BootText() string {
	if off := s.StaysOff(); off != "" {
		return off
	}
	return progress.Boot(s.Trace()) + "; " + progress.BootHint(s.Trace())
}

// GoingOff reports whether it was asked to go off and was not seen to do so.
func (s *Server) GoingOff() bool {
	a := s.Record.Power.Asked
	return a != nil && a.Want == model.PowerOff && !s.Reached()
}

// Settling reports whether a power-on was asked for and may still take effect.
func (s *Server) Settling() bool {
	return reading.AwaitsOn(s.Record.Power.Asked, *s.Reading, s.Policy, s.Now)
}

// ComesOn reports whether it is being powered on, or is about to be.
func ComesOn(s *Server) bool {
	a := s.Record.Power.Asked
	return s.Settling() || s.Busy && a != nil && a.Want == model.PowerOn && !a.At.Before(s.Reading.At)
}

// IsOff reports whether it is confirmed to be off.
func (s *Server) IsOff() bool {
	return s.Power() == model.PowerOff && s.Reading.Offs >= s.Policy.OffReadings
}

// NextLook is when to read a power state that is about to change, at growing intervals.
func NextLook(s *Server) time.Time {
	p, from := s.Policy, s.Reading.At
	if s.Record.Power.Asked == nil {
		return from.Add(p.SettleMax)
	}
	asked := s.NotedAt(s.Record.Power.Asked.At)
	if from.Before(asked) {
		return asked.Add(p.Settle)
	}
	return from.Add(min(max(from.Sub(asked), p.Settle), p.SettleMax))
}

// PauseEnd is policy.PauseEnd at this moment.
func (m *Moment) PauseEnd(noted time.Time, longest time.Duration) time.Time {
	return policy.PauseEnd(noted, longest, m.Now)
}

// NotBefore is when the next attempt may be made after one that failed.
func (s *Server) NotBefore() time.Time {
	return s.PauseEnd(s.Record.Life.NotBefore, s.Policy.BackoffMax)
}

// NotedAt is when something was noted: the start of this process, if that clock was ahead.
func (m *Moment) NotedAt(noted time.Time) time.Time {
	if noted.After(m.Now) {
		return m.Started
	}
	return noted
}

// Over reports whether a time-out that forces or fails something is over.
func (m *Moment) Over(from time.Time, length time.Duration) bool {
	return !m.Now.Before(m.OverAt(from, length))
}

// OverAt is when a time-out is over. One that was noted before this process began may be of another
// clock, so it lasts until some minutes after the start, and begins there if that clock was ahead.
func (m *Moment) OverAt(from time.Time, length time.Duration) time.Time {
	from = m.NotedAt(from)
	end := from.Add(length)
	if grace := m.Started.Add(m.Policy.StartGrace); from.Before(m.Started) && end.Before(grace) {
		return grace
	}
	return end
}

// Resolve is the name by which Ingot knows the server that Git calls name.
func (m *Moment) Resolve(name string) model.ServerName {
	if known, ok := m.Aliases[name]; ok {
		return known
	}
	return model.ServerName(name)
}

// InstallUnknown reports whether it is not known if it was installed.
func (s *Server) InstallUnknown() bool {
	return s.Record.Doubt != nil && s.Record.Doubt.Reason == model.DoubtInstallUnknown
}

// HasInstall reports whether it holds what was installed for its claim, as far as is known.
func (s *Server) HasInstall() bool { return s.Record.Install.Digest != "" }

// Unconfirmed reports whether it is taken to be installed without a report of it.
func (s *Server) Unconfirmed() bool { return s.HasInstall() && !s.Record.Install.Unconfirmed.IsZero() }

// Intends reports whether a decision is its newest one.
func (s *Server) Intends(kind model.IntentKind, value string) bool {
	i := s.Record.Intent
	return i != nil && i.Kind == kind && i.Value == value
}

// IsBound reports whether it is in use: a claim has it, or had it and left its disks.
func (s *Server) IsBound() bool {
	return slices.Contains([]model.ServerState{model.StateReserved, model.StateReleased}, s.Record.Settled())
}

// Why is a reason that holds since its state was entered, and that needs no person.
func (s *Server) Why(reason, message string) Why { return s.WhyBy(reason, message, ActorNone) }

// WhyBy is a reason that holds since its state was entered, and who has to act.
func (s *Server) WhyBy(reason, message string, by Actor) Why {
	return Why{Reason: reason, Message: message, Since: s.Record.Life.Since, Actor: by}
}

// Installs reports whether it has a claim whose image is not installed yet.
func Installs(s *Server) bool {
	return s.State() == model.StateReserved && s.Claim != nil && s.Record.Release == nil &&
		s.Record.Claim.Power == model.PowerOn && !s.HasInstall() && !s.InstallUnknown()
}

// ProbeReport is what its probe reported of it with its open ticket, nil if nothing.
func ProbeReport(s *Server) *model.ProbeReport {
	if r := s.Observed.Probes[s.Name]; r != nil && s.Opened(model.PurposeDiscovery) && r.Ticket == s.Ticket().ID {
		return r
	}
	return nil
}

// WipeReport is what its probe reported of its wipe with its open ticket, nil if nothing.
func WipeReport(s *Server) *model.WipeReport {
	if r := s.Observed.Wipes[s.Name]; r != nil && s.Opened(model.PurposeCleanup) && r.Ticket == s.Ticket().ID {
		return r
	}
	return nil
}

// UntilOff is a boot whose ticket boots nothing, also by hand, before the server was seen off and that is shown.
func UntilOff(s *Server, b Boot) Boot {
	b.Ticket.AwaitingOff = !s.IsOff() || !s.Shown || s.Unpushed
	return b
}

// OpenTicket proposes to let the ticket of a server that is off boot. It is recorded before the power-on.
func OpenTicket(s *Server) Proposal {
	p := s.Change(func(rec *model.ServerRecord) {
		ChangeTicket(rec, func(t *model.Ticket) { t.AwaitingOff = false })
	}).Stay(Act)
	p.Touches = true
	return p
}

// Removal is the commit that removed a tenant's object, if one did and it was not put back since
// in a way that cannot be used; tenant "" is any. What Git merely lacks stays in force (law 1).
func (m *Moment) Removal(id model.Identity, tenant string) (model.Removal, bool) {
	r, ok := m.LastRemoval(id, tenant)
	return r, ok && !m.Desired.IsQuarantinedOf(id, cmp.Or(tenant, r.Tenant))
}

// LastRemoval is the commit that removed a tenant's object last, even if it is back since.
func (m *Moment) LastRemoval(id model.Identity, tenant string) (model.Removal, bool) {
	if r, ok := m.Desired.RemovalOf(id, tenant); ok {
		return r, true
	}
	if id.Kind == model.KindServerClaim && m.Outrun[id.ClaimName()] {
		return model.Removal{Revision: m.Desired.Revision, At: m.Now}, true
	}
	for _, r := range m.Observed.Fleet.Removed {
		if r.Identity == id && r.IsOf(tenant) {
			return r.Removal, true
		}
	}
	return model.Removal{}, false
}

// Removed reports whether a commit removed an object.
func (m *Moment) Removed(id model.Identity) bool {
	_, ok := m.Removal(id, "")
	return ok
}

// ClaimRemoval is the commit that removed a server's claim, and not one of another tenant's of that name.
func (m *Moment) ClaimRemoval(rec *model.ServerRecord) (model.Removal, bool) {
	r, ok := m.LastClaimRemoval(rec)
	return r, ok && !m.Desired.IsQuarantinedOf(m.ClaimNow(rec).Identity(), cmp.Or(rec.Claim.Tenant, r.Tenant))
}

// LastClaimRemoval is the removal of a server's claim, under the name that it had last.
func (m *Moment) LastClaimRemoval(rec *model.ServerRecord) (model.Removal, bool) {
	if r, ok := m.Desired.RemovalOf(m.ClaimNow(rec).Identity(), rec.Claim.Tenant); ok {
		return r, true
	}
	return m.LastRemoval(rec.Claim.Name.Identity(), rec.Claim.Tenant)
}

// ClaimNow is the name that a server's claim has in Git now.
func (m *Moment) ClaimNow(rec *model.ServerRecord) model.ClaimName {
	return m.Desired.NameNow(rec.Claim.Name, rec.Claim.Renamed)
}

// Namesake reports whether another tenant's maintenance was called so before.
func (m *Moment) Namesake(mt *model.ServerMaintenance) bool {
	r, removed := m.Removal(model.MaintenanceIdentity(mt.Name), "")
	return removed && r.Tenant != "" && r.Tenant != mt.Tenant
}

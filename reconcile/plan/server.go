package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// server is all that is known of one server at one moment.
type server struct {
	fleet   *fleet
	name    model.ServerName
	spec    *model.Server // what Git says of it; nil when nothing
	rec     *model.ServerRecord
	stored  *model.ServerRecord // as the input has it; nil = it has none
	facts   *model.ServerFacts
	bmc     *bmcView           // that its record names; nil = it is not known
	reading *proposal.Reading  // which nobody changes
	claim   *model.ServerClaim // the claim it is bound to, if Git still holds it
	bind    *model.ServerClaim // the claim it is to be bound to now
	// blocked says why the server cannot be reached or must not be; "" = it can.
	blocked proposal.Why
	taints  []RuleTaint // by ServerReadinessRules
	// bootstrapped are the rules that it is ready for, and that are to be remembered.
	bootstrapped []string
	// bringsBack is set for a step that only brings back the server's power.
	bringsBack bool
	// fresh is set for a server whose record is only being made.
	fresh bool
	kept  *serverKept
}

// step returns the server's next step, and has it looked at again when its ticket
// is over. A step that touches the machine waits while it must not be taken yet, and
// is then thought over again.
func (s *server) step() Step {
	f := s.fleet
	before, powerOns, reprovisions, installs := *s, f.powerOns, f.reprovisions, f.installs
	st := s.next()
	for _, m := range []*Move{st.Move, st.Queued} {
		if m == nil || !m.touches() {
			continue
		}
		if why := before.mustWait(m); why.Reason != "" {
			*s, f.powerOns, f.reprovisions, f.installs = before, powerOns, reprovisions, installs
			st = s.rest(why)
		}
	}
	rests := st.Move == nil || st.Move.Routine
	if blocked := s.fleet.blockedByGuard[s.name]; len(blocked) > 0 && st.Why.Reason == "" && rests {
		st.Why = s.guardWhy(blocked[0]) // no plan follows on a look that finds nothing new
	}
	if rests {
		st = s.orderBoot(s.indicate(st))
	}
	if end := s.strandedEnd(); end.After(s.now()) {
		st = st.wakeBy(end)
	}
	if _, end := s.window(); end.After(s.now()) {
		return st.wakeBy(end)
	}
	return st
}

// rules are what comes before a server's life goes on, in the order of precedence: the
// first that has a step for the server decides.
var rules = []func(*server) (Step, bool){
	(*server).noteNew,
	(*server).noteInstallUnknown,

	// Nothing is asked of the machine for these, whatever else it waits for.
	(*server).rekey,
	(*server).rename,
	(*server).noteMACs,
	(*server).noteBootstrapped,
	(*server).inherit,
	(*server).noteCleanup,
	(*server).noteApproval,
	(*server).decideRelease,
	(*server).withdrawReprovision,
	(*server).forOnce,
	(*server).followBootedBy,
	(*server).retry,
	(*server).expire,
	(*server).disarm,
	(*server).noteOrphaned,
	(*server).forget,

	// From here on the machine can be reached, and its power state was read.
	(*server).awaitReachable,
	(*server).noteRanBefore,
	(*server).readAnew,
	(*server).contradicted,
	(*server).serviced,
	(*server).ranInGap,
	(*server).observe,
	(*server).awaitSettled,
	(*server).readCards,
	(*server).meanwhile,
	(*server).operation,
	(*server).maintenance,
}

// next returns the server's next step.
func (s *server) next() Step {
	for _, rule := range rules {
		if st, ok := rule(s); ok {
			return st
		}
	}
	return s.live()
}

// noteNew records a server that is seen for the first time: it is known for good before
// anything is done to it.
func (s *server) noteNew() (Step, bool) {
	if s.stored != nil {
		return Step{}, false
	}
	s.edit().MACs = s.macs()
	return s.stay(), true
}

// awaitReachable leaves a server alone that cannot be reached or must not be, or that failed a
// moment ago.
func (s *server) awaitReachable() (Step, bool) {
	switch {
	case s.blocked.Reason != "":
		return Step{Why: s.blocked}, true
	case s.now().Before(s.notBefore()):
		return Step{Why: s.failing(), Wake: s.notBefore()}, true
	case s.now().Before(s.reading.NotBefore):
		return Step{Why: s.unreachable(), Wake: s.reading.NotBefore}, true
	}
	return Step{}, false
}

// readAnew reads the power state where what is known of it does not count.
func (s *server) readAnew() (Step, bool) {
	switch {
	case s.reading.At.IsZero() || s.reading.Failures > 0:
		return s.stay(proposal.Inspect{Inventory: s.facts.Inventory == nil}), true
	case s.rec.Life.Failures > 0 && s.reading.At.Before(s.notBefore()):
		return s.stay(proposal.Inspect{}), true // it may be another since that failed
	}
	return Step{}, false
}

// awaitSettled waits until the server is On or Off.
func (s *server) awaitSettled() (Step, bool) {
	if s.power().Settled() {
		return Step{}, false
	}
	if s.reading.Unknowns >= proposal.PowerUnknown {
		return s.rest(s.why(model.ReasonWaitingForPower, "its BMC does not say whether it is on or off; nothing is done to it until it does: "+
			"look at the BMC, and restart that").By(proposal.RackOperator)), true
	}
	return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "power state is "+string(s.power()))), true
}

// live is the life of a server that can be reached and is to be acted upon.
func (s *server) live() Step {
	if st, ok := s.theft(); ok {
		return st
	}
	switch s.rec.Life.State {
	case model.StateInitial:
		return s.initial()
	case model.StateDiscovery:
		return s.discovery()
	case model.StateAvailable:
		return s.available()
	case model.StateReserved:
		return s.reserved()
	case model.StateCleanup:
		return s.cleanup()
	case model.StateReleased:
		return s.released()
	case model.StateMaintenance:
		return s.maintained()
	case model.StateError:
		return s.erroneous()
	default:
		return s.rest(s.whySince(model.ReasonUnknownState, "its record has the unknown state "+string(s.rec.Life.State), proposal.RackOperator))
	}
}

func (s *server) now() time.Time { return s.fleet.in.Now }

func (s *server) power() model.Power { return s.facts.Power }

// progress is how far the server has come with its ticket, nil if nowhere.
func (s *server) progress() *model.Progress { return s.fleet.in.Observed.ProgressOf(s.rec) }

// annotation returns an annotation of the server's manifest.
func (s *server) annotation(key string) string {
	if s.spec == nil {
		return ""
	}
	return s.spec.Annotations[key]
}

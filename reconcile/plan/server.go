package plan

import (
	"time"

	"ingot/model"
)

// probeGrace is how long the probe's own system, which holds nothing of value,
// may take to shut down.
const probeGrace = 30 * time.Second

// server is all that is known of one server at one moment.
type server struct {
	fleet   *fleet
	name    model.ServerName
	spec    *model.Server // what Git says of it; nil when nothing
	rec     *model.ServerRecord
	facts   *model.ServerFacts
	reading Reading
	claim   *model.ServerClaim // the claim it is bound to, if Git still holds it
	bind    *model.ServerClaim // the claim it is to be bound to now
	// blocked says why the server cannot be reached or must not be; "" = it can.
	blocked Why
	// fresh is set for a server whose record is only being made.
	fresh bool
}

// Step is what becomes of a server now: a move, or the reason why none.
type Step struct {
	Move *Move
	Why  Why
	Wake time.Time // when to look again; zero = on a change
}

// step returns the server's next step, and has it looked at again when its ticket
// is over. A step that touches the machine waits while it must not be taken yet, and
// is then thought over again.
func (s *server) step() Step {
	before, powerOns, reprovisions := *s, s.fleet.powerOns, s.fleet.reprovisions
	st := s.next()
	if st.Move != nil && st.Move.touches() {
		if why := before.mustWait(st.Move); why.Reason != "" {
			*s, s.fleet.powerOns, s.fleet.reprovisions = before, powerOns, reprovisions
			st = s.rest(why)
		}
	}
	if held := s.fleet.held[s.name]; len(held) > 0 && st.Why.Reason == "" && st.Move == nil {
		st.Why = s.guardHeld(held[0])
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

	// Nothing is asked of the machine for these, whatever else it waits for.
	(*server).rekey,
	(*server).rename,
	(*server).noteMACs,
	(*server).inherit,
	(*server).decideRelease,
	(*server).forOnce,
	(*server).followBootedBy,
	(*server).retry,
	(*server).expire,
	(*server).disarm,

	// From here on the machine can be reached, and its power state was read.
	(*server).awaitReachable,
	(*server).noteRanBefore,
	(*server).readAnew,
	(*server).serviced,
	(*server).doubt,
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
	if s.fleet.in.Observed.Servers[s.name] != nil {
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
	case s.now().Before(s.rec.NotBefore):
		return Step{Why: s.failing(), Wake: s.rec.NotBefore}, true
	case s.now().Before(s.reading.NotBefore):
		return Step{Why: s.unreachable(), Wake: s.reading.NotBefore}, true
	}
	return Step{}, false
}

// readAnew reads the power state where what is known of it does not count.
func (s *server) readAnew() (Step, bool) {
	switch {
	case s.reading.At.IsZero() || s.reading.Failures > 0:
		return s.stay(Inspect{Inventory: s.facts.Inventory == nil}), true
	case s.rec.Failures > 0 && s.reading.At.Before(s.rec.NotBefore):
		return s.stay(Inspect{}), true // it may be another since that failed
	}
	return Step{}, false
}

// awaitSettled waits until the server is On or Off.
func (s *server) awaitSettled() (Step, bool) {
	if s.power().Settled() {
		return Step{}, false
	}
	return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "power state is "+string(s.power()))), true
}

// live is the life of a server that can be reached and is to be acted upon.
func (s *server) live() Step {
	if st, ok := s.theft(); ok {
		return st
	}
	switch s.rec.State {
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
		return s.rest(s.whySince(model.ReasonUnknownState, "its record has the unknown state "+string(s.rec.State), RackOperator))
	}
}

// initial adopts a server, or discovers it once nothing of anybody's runs on it.
func (s *server) initial() Step {
	switch {
	case s.facts.Inventory == nil:
		return s.stay(Inspect{Inventory: true})
	case s.adoptable() && s.duplicate().Reason != "":
		return s.rest(s.duplicate())
	case s.adoptable():
		return s.adopt()
	}
	if st, ok := s.found(); ok {
		return st
	}
	return s.beginDiscovery()
}

// found is the step of a server that runs, or may run, what Ingot did not start.
func (s *server) found() (Step, bool) {
	awaitingOff, running := s.holds(model.PurposeDiscovery), !s.rec.FoundRunning.IsZero()
	switch {
	case awaitingOff && running:
		return s.letBoot(s.shutDown()), true
	case s.power() == model.PowerOn:
		return s.foundOn()
	case awaitingOff:
		return s.letBoot(s.off(s.fleet.in.Policy.PowerOffGrace)), true
	case running && !s.surelyOff():
		return s.confirmOff(), true
	}
	return Step{}, false
}

// foundOn is the step of a server in Initial that is on.
func (s *server) foundOn() (Step, bool) {
	opened := s.opened(model.PurposeDiscovery)
	switch {
	case opened && !s.rec.Ticket.AwaitingOff && s.ours():
		return s.enter(model.StateDiscovery), true // powered on by us, and then cut off
	case opened || s.rec.FoundRunning.IsZero() || !s.discoverAsked():
		return s.leaveRunning(), true
	case !s.intends(model.IntentDiscover, s.annotation(model.AnnotationDiscover)):
		return s.decideDiscover(), true
	case s.stuckOn():
		return s.rest(s.foundRunning()), true
	}
	return Step{}, false
}

// beginDiscovery boots the probe on a server, as often as is tried.
func (s *server) beginDiscovery() Step {
	p := s.fleet.in.Policy
	switch {
	case s.power() != model.PowerOn && s.reading.Offs < p.OffReadings && !s.starting():
		return s.look(s.reading.At.Add(p.ConfirmEvery), s.why(model.ReasonWaitingForPowerOff, "making sure that the server is off"))
	case s.rec.Attempts >= p.DiscoveryAttempts:
		return s.fail(model.ReasonDiscoveryFailed, s.discoveryFailure())
	case p.DiscoveryImage == "":
		return s.rest(s.why(model.ReasonNoDiscoveryImage, "discovery.image is not set in Ingot's configuration").by(RackOperator))
	case !s.opened(model.PurposeDiscovery):
		return s.arm(model.PurposeDiscovery, s.held(Boot{Image: p.DiscoveryImage}))
	}
	return s.netBoot(s.discover)
}

// discover notes that the server is powered on to be discovered.
func (s *server) discover(rec *model.ServerRecord) {
	handle(rec, AskedDiscover, s.annotation(model.AnnotationDiscover))
	rec.State, rec.Since, rec.BootProblem = model.StateDiscovery, s.now(), nil
	rec.FoundRunning, rec.Message = time.Time{}, ""
	rec.Attempts++
}

// discovery waits for the report of the probe that was booted.
func (s *server) discovery() Step {
	p, report := s.fleet.in.Policy, s.probeReport()
	opened := s.opened(model.PurposeDiscovery)
	late := !opened || s.over(s.rec.Since, p.DiscoveryTimeout)
	switch {
	case opened && report == nil && s.stranded():
		return s.discoverAnew()
	case report != nil && complete(report):
		return s.discovered(report)
	case report != nil && !late:
		st := s.rest(s.whySince(model.ReasonReportIncomplete, "the probe reported, but no network interface; it is asked until the time is up", RackOperator))
		return st.wakeBy(s.rec.Since.Add(p.DiscoveryTimeout))
	case late:
		return s.endDiscovery()
	case s.settling():
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
	case s.power() == model.PowerOff:
		return s.rediscover()
	}
	st := s.rest(s.whySince(model.ReasonWaitingForReport, "waiting for the probe's report, "+s.lastStage(), ActorNone))
	return st.wakeBy(s.rec.Since.Add(p.DiscoveryTimeout))
}

// probeReport is what the server's probe reported of it with its open ticket, nil if
// nothing.
func (s *server) probeReport() *model.ProbeReport {
	r := s.fleet.in.Observed.Probes[s.name]
	if r == nil || !s.opened(model.PurposeDiscovery) || r.Ticket != s.rec.Ticket.ID {
		return nil
	}
	return r
}

// discoverAnew ends a ticket that nobody was there to answer: it counts as no attempt.
func (s *server) discoverAnew() Step {
	s.end(model.TicketSpent)
	rec := s.edit()
	rec.Attempts = max(rec.Attempts-1, 0)
	return s.stay()
}

// discovered powers the server off, and then it is Available.
func (s *server) discovered(report *model.ProbeReport) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	if text := s.ambiguous(&report.Data); text != "" {
		return s.failAmbiguous(text)
	}
	rec := s.edit()
	rec.Attempts, rec.Intent = 0, nil
	s.forgetThefts()
	rec.MACs = s.proven(&report.Data)
	s.noteBootsAfter()
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// endDiscovery powers a server off whose discovery came to nothing in its time, unless
// what it runs may be somebody's.
func (s *server) endDiscovery() Step {
	if s.power() == model.PowerOn && !s.mayForceOff() {
		s.enter(model.StateInitial)
		return s.noteRunning("it was switched on to be discovered, and asked for nothing of that: " + s.lastStage() + "; " + s.hint())
	}
	st, done := s.off(s.lateGrace())
	if !done {
		return st
	}
	if text := s.ambiguous(nil); text != "" {
		return s.failAmbiguous(text)
	}
	return s.rediscover()
}

// rediscover gives up on an attempt at discovery.
func (s *server) rediscover() Step {
	rec := s.edit()
	rec.Message = s.lastStage()
	rec.NotBefore = s.now().Add(Backoff(s.name, rec.Attempts, s.fleet.in.Policy))
	rec.LastError = "discovery ended without a report, " + s.lastStage()
	if s.progress().LockedOut() {
		rec.Attempts = max(rec.Attempts-1, 0)
		rec.LastError = "discovery ended without a report: who asked to boot could not be taken for the server, see its condition BootRefused"
	}
	s.end(model.TicketSpent)
	return s.enter(model.StateInitial)
}

// onReadings is how often in a row a server that is to be off must be read On to be
// switched off: some BMCs are wrong for seconds after a reset.
const onReadings = 2

func (s *server) available() Step {
	switch {
	case s.rec.Ticket.Open():
		s.end(model.TicketSpent)
		return s.stay()
	case s.power() == model.PowerOn && s.reading.Ons < onReadings && !s.goingOff():
		return s.look(s.reading.At.Add(s.fleet.in.Policy.ConfirmEvery), s.why(model.ReasonWaitingForPowerOff, "it is said to be on, though nobody switched it on: making sure"))
	case s.power() == model.PowerOn || s.reading.Offs < s.fleet.in.Policy.OffReadings:
		st, _ := s.off(s.fleet.in.Policy.PowerOffGrace)
		return st
	case s.bind != nil:
		rec := s.edit()
		rec.Claim, rec.ClaimedAt, rec.WantPower = s.bind.ClaimName(), s.now(), s.bind.Spec.Power
		rec.Tenant = s.bind.Tenant
		s.announce(model.IntentBind, string(rec.Claim))
		handleAnew(rec, AskedReprovision, s.bind.Annotations[model.AnnotationReprovision])
		rec.Installed, rec.Unconfirmed, rec.Reprovision, rec.Attempts, rec.Release = "", time.Time{}, "", 0, nil
		return s.enter(model.StateReserved)
	}
	return s.rest(s.duplicate())
}

// off is the step that brings the server to a confirmed Off, or done. A
// graceful shutdown that takes longer than grace is forced.
func (s *server) off(grace time.Duration) (st Step, done bool) {
	p, isOff := s.fleet.in.Policy, s.power() == model.PowerOff
	why := s.why(model.ReasonWaitingForPowerOff, "waiting for the server to power off")
	switch {
	case isOff && s.reading.Offs >= p.OffReadings:
		return Step{}, true
	case s.settling():
		return s.look(s.nextLook(), why), false // it may yet come on
	case isOff && s.starting():
		return s.askFrom(model.PowerOff, model.ResetForceOff), false // it did not come on, and must not later
	case isOff:
		return s.look(s.reading.At.Add(p.ConfirmEvery), why), false
	case s.goingOff() && s.rec.Asked.Unsure && !s.knowsNoShutdown():
		return s.askAgain(why), false
	}
	if reset := s.nextReset(grace); reset != "" {
		return s.ask(reset), false
	}
	return s.look(s.nextLook(), why), false
}

// nextReset is what to ask a server for that is on and is to be off; "" = what was asked
// for may yet take effect. A machine that refuses to shut down is forced.
func (s *server) nextReset(grace time.Duration) model.ResetKind {
	asked := s.rec.Asked
	switch {
	case s.knowsNoShutdown():
		return model.ResetForceOff
	case !s.goingOff() && grace > 0 && s.rec.Failures < 3:
		return model.ResetGracefulOff
	case !s.goingOff():
		return model.ResetForceOff
	case asked.Reset == model.ResetGracefulOff && s.over(asked.At, grace),
		asked.Reset == model.ResetForceOff && s.over(asked.At, s.fleet.in.Policy.PowerOnLimit):
		return model.ResetForceOff
	}
	return ""
}

// netBoot boots the server from the network once, as far as the limit of
// concurrent power-ons allows, and notes what follows from it.
func (s *server) netBoot(then func(*model.ServerRecord)) Step {
	return s.powerOn(then, BootOnce{Method: s.bootMethod()})
}

func (s *server) powerOn(then func(*model.ServerRecord), before ...Action) Step {
	if s.settling() {
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
	}
	if s.starting() && s.reading.At.Before(s.rec.Asked.At) && !s.rec.Asked.At.After(s.now()) {
		return s.look(s.reading.At, s.why(model.ReasonWaitingForPower, "looking whether the server powered on")) // before it is asked again
	}
	if s.fleet.powerOns <= 0 {
		return s.rest(s.why(model.ReasonPowerOnsLimited, "waiting for other servers to power on (guard.maxConcurrentPowerOns)"))
	}
	tries := 0
	if a := s.rec.Asked; a != nil && a.Unsure && a.Reset == model.ResetOn && !s.reached() {
		if a.Tries >= s.fleet.in.Policy.UnsureTries {
			return s.powerUnknown()
		}
		tries = a.Tries
	}
	s.fleet.powerOns--
	rec := s.edit()
	if then != nil {
		then(rec)
	}
	rec.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: s.now(), Tries: tries + 1}
	return s.stay(append(before, SetPower{Reset: model.ResetOn, From: model.PowerOff})...)
}

// ask makes one power request.
func (s *server) ask(reset model.ResetKind, before ...Action) Step {
	return s.askFrom("", reset, before...)
}

// askFrom makes one power request of a server that is in power state from.
func (s *server) askFrom(from model.Power, reset model.ResetKind, before ...Action) Step {
	want := model.PowerOn
	if reset == model.ResetGracefulOff || reset == model.ResetForceOff {
		want = model.PowerOff
	}
	s.edit().Asked = &model.PowerAsked{Reset: reset, Want: want, At: s.now(), Tries: 1}
	return s.stay(append(before, SetPower{Reset: reset, From: from, Gently: !s.rec.FoundRunning.IsZero()})...)
}

// askAgain makes a power request once more of which nobody knows whether it was
// carried out, after a look that showed no effect.
func (s *server) askAgain(why Why) Step {
	p, asked := s.fleet.in.Policy, s.rec.Asked
	switch {
	case !asked.At.After(s.now()) && (s.now().Before(asked.At.Add(p.UnsureAfter)) || s.reading.At.Before(asked.At)):
		return s.look(s.nextLook(), why)
	case asked.Tries >= p.UnsureTries:
		return s.powerUnknown()
	}
	again := *asked
	again.At, again.Tries = s.now(), asked.Tries+1
	s.edit().Asked = &again
	return s.stay(SetPower{Reset: asked.Reset, Gently: !s.rec.FoundRunning.IsZero()})
}

// starting reports whether a power-on was asked for that was not seen to take effect.
func (s *server) starting() bool {
	a := s.rec.Asked
	return a != nil && a.Want == model.PowerOn && !s.reached()
}

// goingOff reports whether the server was asked to go off and was not seen to do so.
func (s *server) goingOff() bool {
	return s.rec.Asked != nil && s.rec.Asked.Want == model.PowerOff && !s.reached()
}

// reached reports whether the power state that was last asked for was read since.
func (s *server) reached() bool {
	return s.reading.Reached || s.rec.Asked != nil && s.rec.Asked.Reached
}

// settling reports whether a power-on was asked for and may still take effect.
func (s *server) settling() bool {
	p := s.fleet.in.Policy
	if !s.starting() || s.rec.Asked.At.After(s.now()) {
		return false
	}
	limit := p.PowerOnLimit
	if s.rec.Asked.Unsure {
		limit = p.UnsureAfter
	}
	return s.now().Before(s.rec.Asked.At.Add(limit))
}

// nextLook is when to read a power state that is about to change: soon after it
// was asked for, then ever more seldom.
func (s *server) nextLook() time.Time {
	p, from := s.fleet.in.Policy, s.reading.At
	if s.rec.Asked == nil {
		return from.Add(p.SettleMax)
	}
	if from.Before(s.rec.Asked.At) {
		return s.rec.Asked.At.Add(p.Settle)
	}
	return from.Add(min(max(from.Sub(s.rec.Asked.At), p.Settle), p.SettleMax))
}

// edit returns the record of the move that is being made: a copy, made once.
func (s *server) edit() *model.ServerRecord {
	if !s.fresh {
		c := *s.rec
		s.rec, s.fresh = &c, true
	}
	return s.rec
}

// enter does actions and then is in state.
func (s *server) enter(state model.ServerState, do ...Action) Step {
	rec := s.edit()
	s.noteDisks()
	rec.State, rec.Since, rec.BootProblem, rec.Identified = state, s.now(), nil, true
	if state != model.StateError {
		rec.Reason, rec.Message = "", ""
	}
	return s.stay(do...)
}

// fail enters Error, to return to the present state once it is mended.
func (s *server) fail(reason, message string) Step {
	rec := s.edit()
	rec.Back, rec.Reason, rec.Message = rec.State, reason, message
	s.end(model.TicketSpent)
	return s.enter(model.StateError)
}

// stay does actions without leaving the state.
func (s *server) stay(do ...Action) Step {
	return Step{Move: &Move{Do: do, Then: s.rec}}
}

// look reads the power state when it is due, and waits until then.
func (s *server) look(due time.Time, why Why) Step {
	if s.now().Before(due) {
		return Step{Why: why, Wake: due}
	}
	st := s.stay(Inspect{})
	st.Why = why
	return st
}

// rest reads the power state of a server with which there is nothing to do now
// and again, at an interval that is up to a tenth longer or shorter by its name.
func (s *server) rest(why Why) Step {
	st := s.look(s.nextPoll(s.reading.At), why)
	if st.Move != nil {
		st.Move.Routine = true
		st.Wake = s.nextPoll(s.now())
	}
	return st
}

// nextPoll is when a server that was read at last is to be read again. Polls come
// in slots, so that one plan begins those of many servers.
func (s *server) nextPoll(last time.Time) time.Time {
	every := s.fleet.in.Policy.PollInterval
	spread := time.Duration((jitter(s.name) - 0.5) / 5 * float64(every))
	slot := max(every/64, 1)
	return last.Add(every + spread).Truncate(slot).Add(slot)
}

// wakeBy makes sure that the server is looked at again at t.
func (st Step) wakeBy(t time.Time) Step {
	if !t.IsZero() && (st.Wake.IsZero() || t.Before(st.Wake)) {
		st.Wake = t
	}
	return st
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

// discoverAsked reports whether Git asks anew for a running server to be discovered.
func (s *server) discoverAsked() bool {
	v := s.annotation(model.AnnotationDiscover)
	return v != "" && !WasHandled(s.rec, AskedDiscover, v)
}

// complete reports whether a probe's report says all that a server needs to be
// offered to tenants: who it is and how it is connected.
func complete(r *model.ProbeReport) bool {
	return len(r.Data.NetworkInterfaces) > 0 || len(r.Data.NICs) > 0
}

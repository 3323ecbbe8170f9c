package sim

import (
	"cmp"
	"context"
	"time"

	"ingot/model"
)

// Values of BootProgress.LastState (DSP0268, ComputerSystem).
const (
	progressNone     = "None"
	progressFirmware = "SystemHardwareInitializationComplete"
	progressKernel   = "OSBootStarted"
	progressOS       = "OSRunning"
)

// Transition is what a reset does to a machine.
type Transition int

// The transitions.
const (
	TransitionNone     Transition = iota
	TransitionOn                  // switched on
	TransitionShutdown            // asks the operating system to end, then off
	TransitionReboot              // asks the operating system to end, then begins anew
	TransitionOff                 // off at once
	TransitionRestart             // begins anew at once, without losing power
	TransitionCycle               // off at once, then on
)

// verdict is what the BMC makes of a reset.
type verdict struct {
	do      Transition
	refused refusal // "" when it is taken
}

// refusal is why a BMC refuses a reset.
type refusal string

const (
	refusedBusy  refusal = "a power transition is under way"
	refusedState refusal = "the system is in that state already, or off"
)

// judge decides what a reset of an allowed type does to a machine in a power
// state that runs a system.
func judge(resetType string, power model.Power, runs system, refusesRepeat bool) verdict {
	switch power {
	case model.PowerPoweringOn, model.PowerPoweringOff:
		if resetType != "ForceOff" {
			return verdict{refused: refusedBusy}
		}
	case model.PowerOff:
		return judgeOff(resetType, refusesRepeat)
	case model.PowerOn, model.PowerPaused, model.PowerUnknown:
	}
	switch resetType {
	case "On", "ForceOn":
		return repeated(refusesRepeat)
	case "Off", "GracefulShutdown", "PushPowerButton":
		return verdict{do: heard(runs, TransitionShutdown)}
	case "GracefulRestart": // firmware that found nothing to boot hears this, too
		return verdict{do: TransitionReboot}
	case "ForceOff":
		return verdict{do: TransitionOff}
	case "ForceRestart":
		return verdict{do: TransitionRestart}
	case "PowerCycle":
		return verdict{do: TransitionCycle}
	}
	return verdict{} // Nmi: nothing to be seen from outside
}

func judgeOff(resetType string, refusesRepeat bool) verdict {
	switch resetType {
	case "On", "ForceOn", "PushPowerButton", "PowerCycle":
		return verdict{do: TransitionOn}
	case "Off", "ForceOff", "GracefulShutdown":
		return repeated(refusesRepeat)
	}
	return verdict{refused: refusedState}
}

// repeated is the answer to a request for the state that is.
func repeated(refuses bool) verdict {
	if refuses {
		return verdict{refused: refusedState}
	}
	return verdict{}
}

// heard returns do if a system runs that handles the power button.
func heard(runs system, do Transition) Transition {
	if runs == systemNone {
		return TransitionNone
	}
	return do
}

// reset carries out a Redfish reset of an allowed type, or refuses it.
func (s *mainboard) reset(resetType string, by Cause) refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := judge(resetType, s.power, s.system, s.rack().kind.refusesRepeat)
	record := ResetRecord{At: time.Now(), Type: resetType, Refused: string(v.refused)}
	if v.refused == "" {
		s.lastReset, s.readings = record.At, 0
		record.Ignored = s.ignores(v.do)
	}
	s.resets.add(record)
	if v.refused == "" && !record.Ignored && v.do != TransitionNone {
		s.cause = cause{by: by, reset: resetType}
		s.machine.Change(v.do)
	}
	return v.refused
}

// ignores reports whether a fault keeps do from happening.
func (s *mainboard) ignores(do Transition) bool {
	switch do {
	case TransitionShutdown, TransitionReboot:
		return s.faults.has(FaultGracefulIgnored) || s.faults.has(FaultPowerOffIgnored)
	case TransitionOff, TransitionCycle, TransitionRestart:
		return s.faults.has(FaultPowerOffIgnored)
	case TransitionOn:
		return s.faults.has(FaultPowerOnIgnored)
	case TransitionNone:
	}
	return false
}

// switchOn lets the machine come up, which is the work of run; the caller holds mu.
func (s *mainboard) switchOn(run func(ctx context.Context, life uint64)) {
	s.powerOns++
	s.setPower(model.PowerPoweringOn)
	s.begin(run)
}

// darken takes the power away at once; the caller holds mu.
func (s *mainboard) darken(why string) {
	s.end()
	s.progress = progressNone
	s.note(why)
	s.setPower(model.PowerOff)
}

// end ends the present life: what runs and what was under way; the caller holds mu.
func (s *mainboard) end() {
	s.life++
	s.system = systemNone
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	s.conclude(OutcomeCut, "")
}

// conclude notes what the last boot came to, if that is not known yet; the caller
// holds mu.
func (s *mainboard) conclude(o Outcome, why string) {
	if b := s.boots.last(); b != nil && b.Outcome == "" {
		b.Outcome, b.Error = o, cmp.Or(b.Error, why)
	}
}

// begin begins a new life whose work is run; the caller holds mu.
func (s *mainboard) begin(run func(ctx context.Context, life uint64)) {
	runs := s.system
	s.end()
	if s.power == model.PowerPoweringOff {
		s.system = runs // until it has shut down
	}
	life := s.life
	s.rack().start(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if s.during(life, func() { s.stop = cancel }) {
			run(ctx, life)
		}
	})
}

// during does f in the given life, and reports false when that is over.
func (s *mainboard) during(life uint64, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != life {
		return false
	}
	f()
	return true
}

// setPower changes the power state and tells those who subscribed; the caller
// holds mu.
func (s *mainboard) setPower(p model.Power) {
	if s.power == p {
		return
	}
	old := s.power
	s.power = p
	s.logPower(old, p)
	if p.Settled() {
		s.keep()
	}
	s.bmc.announce(s, p)
}

// reportedPower is the power state as the BMC gives it.
func (s resource) reportedPower() model.Power {
	if _, lies := s.faults.use(FaultFalseOff); lies {
		return model.PowerOff
	}
	args, flaps := s.faults.get(FaultPowerFlaps)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !flaps || time.Since(s.lastReset) > orDefault(args.Delay, 3*time.Second) {
		return s.power
	}
	s.readings++
	if s.readings%2 == 0 {
		return s.power
	}
	if s.power == model.PowerOff {
		return model.PowerOn
	}
	return model.PowerOff
}

// PowerCut makes the power fail: whatever runs or is under way ends at once.
func (s *Server) PowerCut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = cause{by: CauseLoss}
	s.darken("power failed")
}

// PowerReturns is the mains coming back to a machine whose firmware has it come On then.
func (s *Server) PowerReturns() { s.reset("On", CauseLoss) }

// Unplug takes the mains away from the machines and from their BMC, which forgets its
// sessions and refuses connections.
func (b *BMC) Unplug() error {
	for _, s := range b.servers {
		s.PowerCut()
	}
	b.sessions.clear()
	return b.SetFault(FaultRefuse)
}

// Plug gives the mains back: the BMC starts where it was, and the machines stay off.
func (b *BMC) Plug() error {
	b.bootedAt.Store(time.Now().Unix())
	return b.ClearFault(FaultRefuse)
}

// PressPower presses the button on the front: on when off, else a polite request
// that only a running system hears.
func (s *Server) PressPower() {
	s.mu.Lock()
	s.log(Event{Kind: EventPowerPressed, What: "the power button is pressed", Cause: CauseButton})
	s.mu.Unlock()
	s.reset("PushPowerButton", CauseButton)
}

// SetRunning makes the server one that was found running: it is on, and runs what
// is now on its disk. A virtual machine cannot be found so: its events say that.
func (s *Server) SetRunning(image string) {
	if err := s.setRunning(image); err != nil {
		s.rack().opts.Log.Error("server cannot be set running", "server", string(s.name), "err", err)
	}
}

func (s *Server) setRunning(image string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.machine.Adopt(image)
	if err != nil {
		s.note(err.Error())
	}
	return err
}

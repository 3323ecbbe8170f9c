package sim

import (
	"context"
	"fmt"
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

// transition is what a reset does to a machine.
type transition int

const (
	transNothing  transition = iota
	transOn                  // switched on
	transShutdown            // asks the operating system to end, then off
	transReboot              // asks the operating system to end, then begins anew
	transOff                 // off at once
	transRestart             // begins anew at once, without losing power
	transCycle               // off at once, then on
)

// verdict is what the BMC makes of a reset.
type verdict struct {
	do      transition
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
	case "GracefulShutdown", "PushPowerButton":
		return verdict{do: heard(runs, transShutdown)}
	case "GracefulRestart": // firmware that found nothing to boot hears this, too
		return verdict{do: transReboot}
	case "ForceOff":
		return verdict{do: transOff}
	case "ForceRestart":
		return verdict{do: transRestart}
	case "PowerCycle":
		return verdict{do: transCycle}
	}
	return verdict{} // Nmi: nothing to be seen from outside
}

func judgeOff(resetType string, refusesRepeat bool) verdict {
	switch resetType {
	case "On", "ForceOn", "PushPowerButton", "PowerCycle":
		return verdict{do: transOn}
	case "ForceOff", "GracefulShutdown":
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

// heard is do if something runs that listens to the power button.
func heard(runs system, do transition) transition {
	if runs == systemNone {
		return transNothing
	}
	return do
}

// reset carries out a Redfish reset of an allowed type, or refuses it.
func (s *Server) reset(resetType string) refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := judge(resetType, s.power, s.system, s.rack().kind.refusesRepeat)
	record := ResetRecord{At: time.Now(), Type: resetType, Refused: string(v.refused)}
	if v.refused == "" {
		s.lastReset, s.readings = record.At, 0
		record.Ignored = s.ignores(v.do)
	}
	s.resets.add(record)
	if v.refused == "" && !record.Ignored {
		s.change(v.do)
	}
	return v.refused
}

// ignores reports whether a fault keeps do from happening.
func (s *Server) ignores(do transition) bool {
	switch do {
	case transShutdown, transReboot:
		return s.faults.has(FaultGracefulIgnored) || s.faults.has(FaultPowerOffIgnored)
	case transOff, transCycle, transRestart:
		return s.faults.has(FaultPowerOffIgnored)
	case transOn:
		return s.faults.has(FaultPowerOnIgnored)
	case transNothing:
	}
	return false
}

// change begins a transition; the caller holds mu.
func (s *Server) change(do transition) {
	switch do {
	case transNothing:
	case transOn:
		s.switchOn()
	case transShutdown:
		s.setPower(model.PowerPoweringOff)
		s.begin(func(ctx context.Context, life uint64) { s.shutDown(ctx, life, false) })
	case transReboot:
		s.begin(func(ctx context.Context, life uint64) { s.shutDown(ctx, life, true) })
	case transOff:
		s.darken("forced off")
	case transRestart:
		s.note("restarted by force")
		s.begin(s.boot)
	case transCycle:
		s.darken("power cycled")
		s.switchOn()
	}
}

// switchOn lets the machine come up; the caller holds mu.
func (s *Server) switchOn() {
	s.powerOns++
	s.setPower(model.PowerPoweringOn)
	s.begin(s.powerUp)
}

// darken takes the power away at once; the caller holds mu.
func (s *Server) darken(why string) {
	s.end()
	s.progress = progressNone
	s.note(why)
	s.setPower(model.PowerOff)
}

// end ends the present life: what runs and what was under way; the caller holds mu.
func (s *Server) end() {
	s.life++
	s.system = systemNone
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if b := s.boots.last(); b != nil && b.Outcome == "" {
		b.Outcome = OutcomeCut
	}
}

// begin begins a new life whose work is run; the caller holds mu.
func (s *Server) begin(run func(ctx context.Context, life uint64)) {
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
func (s *Server) during(life uint64, f func()) bool {
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
func (s *Server) setPower(p model.Power) {
	if s.power == p {
		return
	}
	s.power = p
	s.note(fmt.Sprintf("power %s", p))
	if p.Settled() {
		s.keep()
	}
	s.bmc.announce(s, p)
}

// powerUp is a life that begins in darkness.
func (s *Server) powerUp(ctx context.Context, life uint64) {
	if !sleep(ctx, s.delays().PowerOn) {
		return
	}
	if s.during(life, func() { s.setPower(model.PowerOn) }) {
		s.boot(ctx, life)
	}
}

// shutDown lets what runs end, and then begins anew or goes dark.
func (s *Server) shutDown(ctx context.Context, life uint64, again bool) {
	if !sleep(ctx, s.delays().PowerOff) {
		return
	}
	s.during(life, func() {
		if again {
			s.note("restarted by its operating system")
			s.begin(s.boot)
			return
		}
		s.darken("shut down")
	})
}

// reportedPower is the power state as the BMC gives it.
func (s *Server) reportedPower() model.Power {
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
	s.darken("power failed")
}

// PressPower presses the button on the front: on when off, else a polite request
// that only a running system hears.
func (s *Server) PressPower() { s.reset("PushPowerButton") }

// SetRunning makes the server one that was found running: it is on, and runs what
// is now on its disk.
func (s *Server) SetRunning(image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.disk = &Disk{Image: image, InstalledAt: time.Now()}
	s.system, s.progress = systemOS, progressOS
	s.note("runs " + image)
	s.setPower(model.PowerOn)
	s.keep()
}

package features

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"ingot/bmc/sim"
)

func (k *walk) keepStore() error {
	k.copied = true
	return k.down(func() error { return k.withoutRedis(k.takeCopy) })
}

func (k *walk) restoreStore() error {
	if !k.copied {
		return nil
	}
	return k.down(func() error { return k.withoutRedis(k.putCopyBack) })
}

func (k *walk) loseStore() error { return k.down(k.emptyStore) }

func (k *walk) holeStore() error {
	server := k.anyServer()
	return k.down(func() error {
		_ = k.damage("loses", server) // nothing may be known of it
		return nil
	})
}

func (k *walk) killAndWait() error { return k.down(func() error { return nil }) }

// walkPoints is how many effects and saves after its start Ingot may be killed at.
const walkPoints = 80

// killAtPoint has Ingot kill itself at one of the effects and saves that it comes to, see
// ingot/model/fault: at one of its start, or of what it is asked for later.
func (k *walk) killAtPoint() error {
	program, err := faultProgram()
	if err != nil {
		return err
	}
	if err := k.kill(); err != nil {
		return err
	}
	n := 1 + k.chance.IntN(walkPoints)
	k.steps[len(k.steps)-1] += " " + strconv.Itoa(n)
	k.overtaken, k.program, k.environment = false, program, []string{"INGOT_FAULT_KILL=" + strconv.Itoa(n)}
	err = k.start()
	k.environment = nil
	if err != nil {
		return k.up() // it was killed before it listened
	}
	return nil
}

func killedItself(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return errors.Is(err, os.ErrProcessDone) || ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func (k *walk) restart() error {
	err := k.ingot.stop()
	if err != nil && !killedItself(err) && !(k.overtaken && endedWith(err, exitAnother) == nil) {
		return err
	}
	return k.up()
}

func (k *walk) sleeps() error {
	process := k.ingot.command.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil && !killedItself(err) {
		return err
	}
	k.pause(4000)
	if err := process.Signal(syscall.SIGCONT); err != nil && !killedItself(err) {
		return err
	}
	return nil
}

func (k *walk) rivalFor() error {
	var arguments []string
	if k.chance.IntN(2) == 0 {
		arguments = []string{k.takeOverFlag()}
	}
	p, err := k.rival(arguments...)
	k.overtaken = k.overtaken || arguments != nil || err == nil
	if err != nil {
		return nil // as it should, while the first one lives
	}
	k.pause(4000)
	return p.kill()
}

func (k *walk) cutPower() error {
	k.machines[k.anyServer()].PowerCut()
	return nil
}

func (k *walk) failBMC() error {
	all := []sim.Fault{sim.FaultRefuse, sim.FaultServerError, sim.FaultHang, sim.FaultPowerFlaps, sim.FaultDropSessions}
	return k.suffer(k.anyServer(), all[k.chance.IntN(len(all))])
}

func (k *walk) lieBMC() error {
	m := k.machines[k.anyServer()]
	lies := []sim.Fault{sim.FaultResetFails, sim.FaultResetDropped, sim.FaultResetHangs, ""}
	what, off := lies[k.chance.IntN(len(lies))], k.chance.IntN(8)
	if err := tellTheTruth(m); err != nil {
		return err
	}
	if what != "" {
		if err := m.SetFault(what); err != nil {
			return err
		}
	}
	if off == 0 {
		return nil
	}
	return m.SetFault(sim.FaultFalseOff, sim.FaultArgs{Requests: off})
}

func (k *walk) well() error {
	for _, m := range k.machines {
		for _, f := range m.BMC().Faults() {
			if err := m.BMC().ClearFault(f); err != nil {
				return err
			}
		}
		for _, f := range m.Faults() {
			if err := m.ClearFault(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func tellTheTruth(m *machine) error {
	for _, fault := range []sim.Fault{sim.FaultResetFails, sim.FaultResetDropped, sim.FaultResetHangs, sim.FaultFalseOff} {
		if err := m.ClearFault(fault); err != nil {
			return err
		}
	}
	return nil
}

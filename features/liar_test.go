package features

import (
	"context"
	"fmt"

	"ingot/bmc/sim"
)

var lies = map[string]sim.Fault{
	"answers them with 500": sim.FaultResetFails,
	"drops its answers":     sim.FaultResetDropped,
	"never answers them":    sim.FaultResetHangs,
}

func liesOfResets(ctx context.Context, machine, what string) error {
	m, err := siteOf(ctx).machine(machine)
	if err != nil {
		return err
	}
	fault, known := lies[what]
	if !known {
		return fmt.Errorf("nobody knows how a BMC %s", what)
	}
	return m.SetFault(fault)
}

func tellsTheTruth(ctx context.Context, machine string) error {
	m, err := siteOf(ctx).machine(machine)
	if err != nil {
		return err
	}
	return tellTheTruth(m)
}

func tellTheTruth(m *machine) error {
	for _, fault := range []sim.Fault{sim.FaultResetFails, sim.FaultResetDropped, sim.FaultResetHangs, sim.FaultFalseOff} {
		if err := m.ClearFault(fault); err != nil {
			return err
		}
	}
	return nil
}

func saysOff(ctx context.Context, machine string, times int) error {
	m, err := siteOf(ctx).machine(machine)
	if err != nil {
		return err
	}
	return m.SetFault(sim.FaultFalseOff, sim.FaultArgs{Requests: times})
}

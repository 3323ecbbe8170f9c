package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
	"ingot/model"
	"ingot/model/must"
)

func TestAPowerCutEndsWithAReadyBMC(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	b.Servers()[0].SetRunning("image")
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultPowerCut, sim.FaultArgs{Delay: 60 * time.Millisecond})
	if err := b.SetFault(sim.FaultPowerCut); err == nil || !strings.Contains(err.Error(), "is cut already") {
		t.Errorf("a second cut: %v", err)
	}
	var seen []sim.Fault
	simtest.Eventually(t, "the BMC is ready", func() bool {
		for _, f := range b.Faults() {
			if f != sim.FaultPowerCut && !slices.Contains(seen, f) {
				seen = append(seen, f)
			}
		}
		return len(b.Faults()) == 0
	})
	want := []sim.Fault{
		sim.FaultRefuse, sim.FaultHTML, sim.FaultUnavailable, sim.FaultNotFound, sim.FaultUnauthorized, sim.FaultSessionLimit,
		sim.FaultNoSystems, sim.FaultCollectionEmpty, sim.FaultUUIDMissing,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("stages %v, want %v", seen, want)
	}
	if power := c.Get(system)["PowerState"]; power != string(model.PowerOff) {
		t.Errorf("afterwards the power is %v, want Off", power)
	}
}

func TestClearingAPowerCutMakesTheBMCReady(t *testing.T) {
	b := start(t, sim.Options{}).BMCs()[0]
	c := simtest.Dial(t, b)
	set(t, b, sim.FaultPowerCut, sim.FaultArgs{Delay: time.Hour})
	must.Do(t, b.ClearFault(sim.FaultPowerCut))
	if uuid := c.Get(system)["UUID"]; uuid == nil || len(b.Faults()) > 0 {
		t.Errorf("UUID %v with faults %v", uuid, b.Faults())
	}
}

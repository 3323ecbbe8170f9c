package sim_test

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/bmc/sim"
	"ingot/bmc/sim/internal/simtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quick() sim.Delays {
	return sim.Delays{Boot: 5 * time.Millisecond, ProbeRestart: 20 * time.Millisecond, ProbeRepeat: 30 * time.Millisecond}
}

func start(t *testing.T, o sim.Options) *sim.Rack {
	t.Helper()
	if o.Delays == (sim.Delays{}) {
		o.Delays = quick()
	}
	return simtest.Start(t, o)
}

// bootOnce asks for one network boot and switches the server on.
func bootOnce(t *testing.T, s *sim.Server) {
	t.Helper()
	c := simtest.Dial(t, s.BMC())
	a := c.Do("PATCH", s.URI(), `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Pxe"}}`)
	if a.Status != http.StatusOK {
		t.Fatalf("override: %d %v", a.Status, a.Body)
	}
	simtest.Reset(t, s, "On")
}

// lastBoot is the newest boot once it has come to something.
func lastBoot(t *testing.T, s *sim.Server, boots int) sim.BootRecord {
	t.Helper()
	var last sim.BootRecord
	simtest.Eventually(t, "a boot comes to something", func() bool {
		all := s.Boots()
		if len(all) < boots {
			return false
		}
		last = all[len(all)-1]
		return last.Outcome != ""
	})
	return last
}

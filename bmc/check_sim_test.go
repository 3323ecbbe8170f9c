package bmc_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bmc"
	"ingot/bmc/sim"
	"ingot/model"
	"ingot/model/must"
)

// simulated runs a rack for as long as the test lasts, and returns its first BMC.
func simulated(t *testing.T, o sim.Options) *sim.BMC {
	t.Helper()
	o.Delays = sim.FastDelays()
	rack := must.Get(sim.New(o))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- rack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return rack.BMCs()[0]
}

func failed(r *bmc.CheckReport) (checks []string) {
	for _, item := range r.Checks {
		if item.Needed && item.Result == bmc.CheckFails {
			checks = append(checks, item.Check)
		}
	}
	return checks
}

// Every kind of BMC that the simulated rack plays is found to be usable, but for those whose
// machines have no boot override, and is left as it was.
func TestACheckOfEachSimulatedBMC(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			b := simulated(t, sim.Options{Personality: kind})
			r := bmc.Check(t.Context(), bmc.CheckOptions{Target: b.Target(), Write: true}.Hasty())
			var want []string
			if kind == "cray" {
				want = []string{"boot override", "write boot override"}
			}
			if got := failed(r); !slices.Equal(got, want) {
				t.Errorf("failed %q, want %q: %+v", got, want, r.Checks)
			}
			if b.Sessions() > 0 || int64(r.Requests) != b.Requests() {
				t.Errorf("%d sessions are left; it says %d requests, of %d", b.Sessions(), r.Requests, b.Requests())
			}
		})
	}
}

func TestACheckOfASimulatedBMCWithAFault(t *testing.T) {
	tests := map[string]struct {
		fault  sim.Fault
		change func(*model.BMCTarget)
		failed []string
	}{
		"another password":             {change: func(t *model.BMCTarget) { t.Password = model.NewSensitive("no") }, failed: []string{"login"}},
		"another certificate":          {change: func(t *model.BMCTarget) { t.Fingerprint = strings.Repeat("0", 64) }, failed: []string{"TLS"}},
		"it refuses connections":       {fault: sim.FaultRefuse, failed: []string{"connection"}},
		"it has no session free":       {fault: sim.FaultSessionLimit}, // HTTP Basic is used
		"it never answers":             {fault: sim.FaultHang, failed: []string{"Redfish"}},
		"it answers 500":               {fault: sim.FaultServerError, failed: []string{"systems"}},
		"it answers errors with 200":   {fault: sim.FaultOKError, failed: []string{"systems"}},
		"it shows no systems":          {fault: sim.FaultNoSystems, failed: []string{"systems"}},
		"it shows no UUID":             {fault: sim.FaultUUIDMissing},
		"it keeps no boot override":    {fault: sim.FaultOverrideNotKept, failed: []string{"write boot override"}},
		"it does not keep its LED":     {fault: sim.FaultIndicatorNotKept},
		"it takes settings elsewhere":  {fault: sim.FaultOverrideInSettings},
		"it shows no MAC address":      {fault: sim.FaultMACsHidden},
		"it wants the mode to be sent": {fault: sim.FaultOverrideNeedsMode},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := simulated(t, sim.Options{})
			if tt.fault != "" {
				err := b.SetFault(tt.fault)
				if err != nil {
					err = b.Servers()[0].SetFault(tt.fault)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			target := b.Target()
			if tt.change != nil {
				tt.change(&target)
			}
			r := bmc.Check(t.Context(), bmc.CheckOptions{Target: target, Timeout: 2 * time.Second, Write: true}.Hasty())
			if got := failed(r); !slices.Equal(got, tt.failed) || r.Usable() != (len(tt.failed) == 0) {
				t.Errorf("failed %q, want %q: %+v", got, tt.failed, r.Checks)
			}
			if n := b.Sessions(); n > 0 && tt.fault != sim.FaultServerError { // which fails logouts, too
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

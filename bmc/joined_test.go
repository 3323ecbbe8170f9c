package bmc_test

import (
	"context"
	"testing"
	"time"

	"ingot/bmc"
	"ingot/bmc/sim"
	"ingot/model"
)

// The client gets along with every kind of BMC that the simulated rack plays:
// each is discovered and inventoried, its override is kept, and it is switched.
func TestClientAndSimulatedRack(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			rack, err := sim.New(sim.Options{Personality: kind, Delays: sim.FastDelays()})
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- rack.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ran; err != nil {
					t.Error(err)
				}
			}()
			p := bmc.NewPool(bmc.Options{})
			defer p.Close(ctx)

			b := rack.BMCs()[0]
			found, err := p.Discover(ctx, b.Target())
			if err != nil {
				t.Fatal(err)
			}
			if found.Fingerprint != b.Fingerprint() || len(found.Systems) != 1 || len(found.Problems) > 0 {
				t.Fatalf("found %+v, want one machine and certificate %s", found, b.Fingerprint())
			}
			s := model.SystemTarget{BMC: b.Target(), URI: found.Systems[0].URI}
			facts, err := p.Inventory(ctx, s)
			if err != nil || facts.Inventory.UUID != found.Systems[0].UUID || len(facts.Inventory.Problems) > 0 {
				t.Fatalf("inventory %+v, %v", facts, err)
			}
			rung, err := p.BootOnce(ctx, s, model.BootUEFIHTTP)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("rung %s, %+v", rung, p.Stats(b.Name()))
			if err := p.Reset(ctx, s, model.ResetOn); err != nil {
				t.Fatal(err)
			}
			await(ctx, t, p, s, model.PowerOn)
			if err := p.Reset(ctx, s, model.ResetForceOff); err != nil {
				t.Fatal(err)
			}
			await(ctx, t, p, s, model.PowerOff)
			if err := p.ClearBootOverride(ctx, s); err != nil {
				t.Error(err)
			}
			if stats := p.Stats(b.Name()); stats.Sessions > 1 || stats.Connections > 2 {
				t.Errorf("used %+v, want one session", stats)
			}
		})
	}
}

// await polls until the power is as wanted.
func await(ctx context.Context, t *testing.T, p *bmc.Pool, s model.SystemTarget, want model.Power) {
	t.Helper()
	for {
		got, err := p.Power(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still %s, want %s", got, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

package bmc_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"ingot/bmc"
	"ingot/bmc/sim"
	"ingot/model"
	"ingot/model/must"
)

// join runs a simulated rack and a pool of clients for as long as the test lasts.
func join(t *testing.T, o sim.Options) (context.Context, *sim.Rack, *bmc.Pool) {
	t.Helper()
	o.Delays = sim.FastDelays()
	rack := must.Get(sim.New(o))(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	ran := make(chan error, 1)
	go func() { ran <- rack.Run(ctx) }()
	p := bmc.NewPool(bmc.Options{ReadBack: []time.Duration{10 * time.Millisecond}, Networks: model.BMCNetworks{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(func() {
		_ = p.Close(ctx)
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return ctx, rack, p
}

// A machine whose firmware asks the network first boots from its disk once its
// power is healed, wherever its BMC keeps an override for that, and is powered on as
// well where it keeps none.
func TestDiskBootOfTheSimulatedRack(t *testing.T) {
	network := []bool{true}
	disk := []bool{false, true} // and not a second time
	tests := map[string]struct {
		fault   sim.Fault
		variant string
		err     error
		asks    []bool // at each boot, the network
	}{
		"that keeps it":                               {variant: "default", asks: disk},
		"that wants the mode with it":                 {fault: sim.FaultOverrideNeedsMode, variant: "with-mode", asks: disk},
		"that wants it in the settings object":        {fault: sim.FaultOverrideInSettings, variant: "settings-object", asks: disk},
		"that does not keep it":                       {fault: sim.FaultOverrideNotKept, err: bmc.ErrOverrideNotKept, asks: network},
		"whose firmware does not follow what it kept": {fault: sim.FaultOverrideIgnored, variant: "default", asks: network},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, rack, p := join(t, sim.Options{})

			machine := rack.Servers()[0]
			machine.SetNetworkFirst(true)
			if tt.fault != "" {
				must.Do(t, machine.SetFault(tt.fault))
			}
			s := machine.Target()
			machine.SetRunning("sha256:1")
			must.Do(t, errOf(p.Reset(ctx, s, model.ResetForceOff, "")))
			await(ctx, t, p, s, model.PowerOff)
			variant, err := p.BootOnce(ctx, s, model.BootDisk)
			if variant != tt.variant || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("got %q, %v; want %q, %v", variant, err, tt.variant, tt.err)
			}
			var asks []bool
			for range tt.asks {
				before := len(machine.Boots())
				must.Do(t, errOf(p.Reset(ctx, s, model.ResetOn, "")))
				await(ctx, t, p, s, model.PowerOn)
				for len(machine.Boots()) == before || machine.Boots()[before].Outcome != sim.OutcomeDisk {
					await(ctx, t, p, s, model.PowerOn)
				}
				asks = append(asks, machine.Boots()[before].Error != "") // that says why it left the network
				must.Do(t, errOf(p.Reset(ctx, s, model.ResetForceOff, "")))
				await(ctx, t, p, s, model.PowerOff)
			}
			if !slices.Equal(asks, tt.asks) {
				t.Errorf("it asks the network: %v, want %v", asks, tt.asks)
			}
		})
	}
}

// The client gets along with every kind of BMC that the simulated rack plays:
// each is discovered and inventoried, its override is kept, and it is switched.
func TestClientAndSimulatedRack(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			ctx, rack, p := join(t, sim.Options{Personality: kind})
			traits := sim.TraitsOf(kind)

			b := rack.BMCs()[0]
			found := must.Get(p.Discover(ctx, b.Target()))(t)
			if found.Fingerprint != b.Fingerprint() || len(found.Systems) != 1 || traits.UUID && len(found.Problems) > 0 {
				t.Fatalf("found %+v, want one machine and certificate %s", found, b.Fingerprint())
			}
			s := model.SystemTarget{BMC: b.Target(), URI: found.Systems[0].URI}
			facts, err := p.Inventory(ctx, s)
			if err != nil || facts.Inventory.UUID != found.Systems[0].UUID || len(facts.Inventory.Problems) > 0 {
				t.Fatalf("inventory %+v, %v", facts, err)
			}
			if got := facts.Inventory; len(got.Processors) == 0 || len(got.Memory) == 0 || traits.MACs != (len(got.MACs()) > 0) {
				t.Errorf("inventory %+v, want its parts", got)
			}
			variant, err := p.BootOnce(ctx, s, model.BootUEFIHTTP)
			if (err == nil) != traits.Override || err != nil && !errors.Is(err, bmc.ErrUnsupported) {
				t.Fatal(err)
			}
			t.Logf("variant %s, %+v", variant, p.Stats(b.Name()))
			must.Do(t, errOf(p.Reset(ctx, s, model.ResetOn, "")))
			await(ctx, t, p, s, model.PowerOn)
			must.Do(t, errOf(p.Reset(ctx, s, model.ResetForceOff, "")))
			await(ctx, t, p, s, model.PowerOff)
			if err := p.ClearBootOverride(ctx, s); traits.Override && err != nil {
				t.Error(err)
			}
			if stats := p.Stats(b.Name()); stats.Sessions > 1 || stats.Connections > 2 {
				t.Errorf("used %+v, want one session", stats)
			}
		})
	}
}

func await(ctx context.Context, t *testing.T, p *bmc.Pool, s model.SystemTarget, want model.Power) {
	t.Helper()
	for {
		got := must.Get(p.Power(ctx, s))(t)
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

// errOf is what came of a reset, where it does not matter what was read before it.
func errOf(_ model.ResetResult, err error) error { return err }

// The indicators of all personalities are switched, by whichever property they have.
func TestIndicatorOfTheSimulatedRack(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			ctx, rack, p := join(t, sim.Options{Personality: kind})
			s := rack.Servers()[0]
			if !sim.TraitsOf(kind).Indicator {
				if _, err := p.SetIndicator(ctx, s.Target(), model.IndicatorLit); !errors.Is(err, bmc.ErrUnsupported) {
					t.Errorf("without an indicator: %v", err)
				}
				return
			}
			for _, led := range []string{model.IndicatorLit, model.IndicatorOff, model.IndicatorBlinking} {
				shown, err := p.SetIndicator(ctx, s.Target(), led)
				if err != nil || !shown.Shows(led) {
					t.Fatalf("%s: %+v, %v", led, shown, err)
				}
				facts, err := p.Inventory(ctx, s.Target())
				if err != nil || facts.Inventory.IndicatorLED != s.Indicator() || shown.LED != s.Indicator() {
					t.Errorf("asked for %s: it is %s, the inventory says %+v; %v", led, s.Indicator(), facts, err)
				}
			}
			must.Do(t, s.SetFault(sim.FaultIndicatorNotKept))
			if _, err := p.SetIndicator(ctx, s.Target(), model.IndicatorOff); !errors.Is(err, bmc.ErrSettingNotKept) {
				t.Errorf("what is not kept: %v", err)
			}
		})
	}
}

// The boot orders of all personalities are set, written only where they differ, now or for the
// next start.
func TestBootOrderOfTheSimulatedRack(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			traits := sim.TraitsOf(kind)
			later := traits.OrdersLater
			ctx, rack, p := join(t, sim.Options{Personality: kind})
			s := rack.Servers()[0]
			set := func(device string) (model.ShownBootOrder, error) {
				return p.SetBootOrder(ctx, s.Target(), []model.BootOrder{{Name: "first", Device: device}})
			}
			if !later && !traits.OrdersNow {
				if _, err := set("Network Card 1 IPv4"); !errors.Is(err, bmc.ErrUnsupported) {
					t.Errorf("without a boot order: %v", err)
				}
				return
			}
			order, err := set("Network Card 1 IPv4")
			if err != nil || !slices.Equal(order.Next, []string{"Boot0002", "Boot0001"}) || order.Pending() != later || s.NetworkFirst() == later {
				t.Fatalf("the network first: %+v, %v", order, err)
			}
			facts, err := p.Inventory(ctx, s.Target())
			if err != nil || !slices.Equal(facts.Inventory.BootOrder, order.Now) {
				t.Errorf("the inventory says %q, %v", facts.Inventory.BootOrder, err)
			}
			if _, err := set("Floppy"); !errors.Is(err, bmc.ErrBootOptionUnknown) || s.NetworkFirst() == later {
				t.Errorf("what is not there: %v", err)
			}
			must.Do(t, s.SetFault(sim.FaultBootOrderNotKept))
			if again, err := set("Boot0002"); err != nil || again.Pending() != later {
				t.Errorf("what is so already: %+v, %v", again, err)
			}
			if _, err := set("Boot0001"); !errors.Is(err, bmc.ErrSettingNotKept) {
				t.Errorf("what is not kept: %v", err)
			}
			must.Get(p.Reset(ctx, s.Target(), model.ResetOn, ""))(t)
			await(ctx, t, p, s.Target(), model.PowerOn)
			for !s.NetworkFirst() { // the firmware takes it over when it starts
				select {
				case <-ctx.Done():
					t.Fatal("what was pending does not come into force")
				case <-time.After(5 * time.Millisecond):
				}
			}
			if _, err := set("Boot0001"); !errors.Is(err, bmc.ErrBusy) {
				t.Errorf("of a machine that is on: %v", err)
			}
		})
	}
}

// A boot from disk has the boot options of disks switched on where they are off, and is set also
// where the BMC shows none.
func TestDiskOptionsOfTheSimulatedRackAreSwitchedOn(t *testing.T) {
	for _, kind := range sim.Personalities() {
		t.Run(kind, func(t *testing.T) {
			traits := sim.TraitsOf(kind)
			ctx, rack, p := join(t, sim.Options{Personality: kind})
			s := rack.Servers()[0]
			must.Do(t, s.SetFault(sim.FaultDiskOptionOff))
			switch _, err := p.BootOnce(ctx, s.Target(), model.BootPXE); {
			case errors.Is(err, bmc.ErrUnsupported): // it has no override at all
				return
			case err != nil:
				t.Fatal(err)
			}
			if !slices.Contains(s.Faults(), sim.FaultDiskOptionOff) {
				t.Error("a boot from the network switches the disk's option on")
			}
			_, err := p.BootOnce(ctx, s.Target(), model.BootDisk)
			on := !slices.Contains(s.Faults(), sim.FaultDiskOptionOff)
			if want := traits.OrdersLater || traits.OrdersNow; err != nil || on != want {
				t.Errorf("it is on: %v, want %v; %v", on, want, err)
			}
		})
	}
}

package sim

import "time"

// written is what PATCH sets of a machine.
type written struct {
	override     bootOverride
	networkFirst bool
	nextFirst    *bool
	assetTag     string
	indicator    string
}

// lag is what a BMC still shows, while FaultPatchLag has it.
type lag struct {
	old   written
	until time.Time
}

// written is what was set last; the caller holds mu.
func (s *mainboard) written() written {
	return written{s.override, s.networkFirst, s.nextFirst, s.assetTag, s.indicator}
}

// shown is what the BMC shows of that; the caller holds mu.
func (s resource) shown() written {
	if time.Now().Before(s.lag.until) {
		return s.lag.old
	}
	return s.written()
}

// changing is called before PATCH sets something; the caller holds mu.
func (s resource) changing() {
	if args, lags := s.faults.get(FaultPatchLag); lags {
		s.lag = lag{old: s.shown(), until: time.Now().Add(orDefault(args.Delay, 3*time.Second))}
	}
}

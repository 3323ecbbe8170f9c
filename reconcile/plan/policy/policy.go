// Package policy has what the configuration says about how servers are treated.
package policy

import (
	"cmp"
	"hash/fnv"
	"time"

	"ingot/model"
)

// Options are what the configuration says about how servers are treated.
type Options struct {
	PollInterval    time.Duration // how often a server at rest is asked for its power state
	RefreshInterval time.Duration // how often a BMC's own facts are read again
	// Settle is when the power is first read after a request; then at twice the elapsed time, at most each SettleMax.
	Settle, SettleMax time.Duration
	ConfirmEvery      time.Duration // the pause between the readings that confirm Off
	OffReadings       int           // how many of them must agree
	// FoundOffTime and FoundOffReadings say how long a server that was found running must be Off.
	FoundOffTime     time.Duration
	FoundOffReadings int
	PowerOffGrace    time.Duration // how long a graceful shutdown may take before it is forced
	PowerOnLimit     time.Duration // how long a power-on may take before it is asked for again
	// PowerPause is the pause before power is restored again; it doubles each time, up to PowerPauseMax.
	PowerPause, PowerPauseMax time.Duration

	DiscoveryImage    string // the OCI image of the probe; without one nothing is discovered
	DiscoveryTimeout  time.Duration
	DiscoveryAttempts int
	// BootTimeout is how long a claimed server may take to fetch its Ignition, with BootAttempts power-ons in all;
	// BootGrace is how long it may then take to report. One that does not counts as installed, and Unconfirmed.
	BootTimeout  time.Duration
	BootAttempts int
	BootGrace    time.Duration

	LoaderArchitectures []string // those of UEFI machines that have a boot loader; nil = not known

	CleanupMode    string                   // none, quick or secure
	CleanupTimeout map[string]time.Duration // by mode, how long a wipe may go on without reporting progress

	// MaxDisruptions is how many bound servers may be released, wiped, reprovisioned or serviced within GuardWindow
	// without approval, or 10 % if that is more; MaxPowerDisruptions how many may be powered off or restarted.
	MaxDisruptions            int
	MaxPowerDisruptions       int
	GuardWindow               time.Duration
	MaxConcurrentReprovisions int
	MaxConcurrentPowerOns     int
	MaxConcurrentInstalls     int // of disk images

	BackoffMin, BackoffMax time.Duration      // of the pause after failures
	BMCBackoffMax          time.Duration      // the same of a BMC, so that one that has started is used within two minutes
	BMCNetworks            model.BMCNetworks  // where BMCs are; others are sent nothing
	Tenants                model.Tenants      // what the files below a folder may define and use
	MACPrefixes            *model.MACPrefixes // how to reach BMCs that have no manifest; nil = none
	// PlaintextSecrets is git.allowPlaintextSecrets. It decides nothing here, and is shown in plans.
	PlaintextSecrets bool
	// LeaseNetworks are those on which Ingot gives leases; nil = all. Elsewhere the address in the manifest counts.
	LeaseNetworks []string
	// A BMC may refuse MaxRefused credentials within RefusedWithin, so that its account is not locked.
	MaxRefused    int
	RefusedWithin time.Duration

	ShowFirst       bool          // decisions about bound servers wait until the status branch shows them
	UnsureAfter     time.Duration // the pause before a power request whose answer was lost is made again
	UnsureTries     int           // how often that is made in all
	OperationExpiry time.Duration // how long an operation may wait to be begun
	ScriptPatience  time.Duration // from the boot script to the next request of a server
	StrandedAfter   time.Duration // how long a server is waited for that was powered on while no Ingot answered
	RememberFor     time.Duration // how long a free server without a BMC is remembered, in case that was a mistake
	StartGrace      time.Duration // how long a process mistrusts times that were noted before it began
	TrustedOff      time.Duration // how long a server from the status branch must be off to count as running nothing
}

// WipeTimeout is CleanupTimeout of a mode.
func (p Options) WipeTimeout(mode string) time.Duration {
	return cmp.Or(p.CleanupTimeout[mode], p.CleanupTimeout[model.CleanupQuick])
}

// Default returns the defaults of the configuration.
func Default() Options {
	return Options{
		PollInterval: time.Minute, RefreshInterval: time.Hour,
		Settle: 250 * time.Millisecond, SettleMax: 5 * time.Second,
		ConfirmEvery: time.Second, OffReadings: 3,
		FoundOffTime: 5 * time.Minute, FoundOffReadings: 5,
		PowerOffGrace: 5 * time.Minute, PowerOnLimit: 2 * time.Minute,
		PowerPause: time.Minute, PowerPauseMax: 10 * time.Minute,
		DiscoveryTimeout: 30 * time.Minute, DiscoveryAttempts: 3,
		BootTimeout: 15 * time.Minute, BootAttempts: 3, BootGrace: 30 * time.Minute,
		CleanupMode: "quick", CleanupTimeout: map[string]time.Duration{"quick": 30 * time.Minute, "secure": 24 * time.Hour},
		MaxDisruptions: 3, MaxPowerDisruptions: 10, GuardWindow: time.Hour,
		MaxConcurrentReprovisions: 1, MaxConcurrentPowerOns: 10, MaxConcurrentInstalls: 50,
		UnsureAfter: 20 * time.Second, UnsureTries: 3, OperationExpiry: time.Hour,
		ScriptPatience: 3 * time.Minute, StrandedAfter: 3 * time.Minute, StartGrace: 5 * time.Minute, TrustedOff: 5 * time.Minute,
		RememberFor: 24 * time.Hour,
		MaxRefused:  3, RefusedWithin: 30 * time.Minute,
		BackoffMin: time.Second, BackoffMax: 5 * time.Minute, BMCBackoffMax: 100 * time.Second,
	}
}

// Jitter is a number in [0, 1) that belongs to a name, so that fleets spread and tests repeat.
func Jitter[N ~string](name N) float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// Backoff is the pause after failures in a row: it doubles each time, minus up to a quarter by name.
func Backoff[N ~string](name N, failures int, p Options) time.Duration {
	d := p.BackoffMin
	for i := 1; i < failures && d < p.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, p.BackoffMax)
	return d - time.Duration(float64(d)/4*Jitter(name))
}

// BMCBackoff is Backoff after failures of a BMC.
func BMCBackoff[N ~string](name N, failures int, p Options) time.Duration {
	p.BackoffMax = min(p.BackoffMax, p.BMCBackoffMax)
	return Backoff(name, failures, p)
}

// PauseEnd is the end of a recorded pause. One that ends later than longest from now is of a clock that was ahead.
func PauseEnd(recorded time.Time, longest time.Duration, now time.Time) time.Time {
	if recorded.After(now.Add(longest)) {
		return time.Time{}
	}
	return recorded
}

// PauseAfter is the pause after a server was powered on again n times in a row.
func (p Options) PauseAfter(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(p.PowerPause<<min(n-1, 16), p.PowerPauseMax)
}

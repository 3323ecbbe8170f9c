package policy

import (
	"time"

	"ingot/model"
)

// Options are what the configuration says about how servers are treated.
type Options struct {
	// PollInterval is how often a server at rest is asked for its power state.
	PollInterval time.Duration
	// RefreshInterval is how often a BMC's own facts are read again.
	RefreshInterval time.Duration
	// Settle is how long after a power request the power state is first looked at;
	// further looks come at twice the elapsed time, at most SettleMax apart.
	Settle, SettleMax time.Duration
	// ConfirmEvery is the pause between the readings that confirm Off, OffReadings
	// how many must agree.
	ConfirmEvery time.Duration
	OffReadings  int
	// FoundOffTime is for how long a server that was found running must be Off, in at
	// least FoundOffReadings readings, before it is switched on.
	FoundOffTime     time.Duration
	FoundOffReadings int
	// PowerOffGrace is how long a graceful shutdown may take before it is forced.
	PowerOffGrace time.Duration
	// PowerOnLimit is how long a power-on may take before it is asked for again.
	PowerOnLimit time.Duration
	// PowerPause is how long a server is left alone whose power was brought back and that is
	// off again, or on; twice as long each time in a row, at most PowerPauseMax.
	PowerPause, PowerPauseMax time.Duration

	// DiscoveryImage is the OCI image of the probe; without one nothing is discovered.
	DiscoveryImage    string
	DiscoveryTimeout  time.Duration
	DiscoveryAttempts int
	// BootTimeout is how long a claimed server may take to fetch its Ignition before
	// the boot is tried again, with at most BootAttempts power-ons; BootGrace how long
	// it may then take to report. One that does not is taken for installed, and
	// Unconfirmed.
	BootTimeout  time.Duration
	BootAttempts int
	BootGrace    time.Duration

	// Architectures are those of the servers that are served, as OCI has them; empty =
	// all. LoaderArchitectures are those of UEFI machines that a boot loader is there
	// for; nil = not known, and taken to be all.
	Architectures, LoaderArchitectures []string

	// CleanupMode is none, quick or secure; CleanupImage the OCI image that wipes.
	CleanupMode  string
	CleanupImage string
	// CleanupTimeout is, by mode, how long a wipe may go on without reporting progress.
	CleanupTimeout map[string]time.Duration

	// MaxDisruptions is how many bound servers may be released, wiped, reprovisioned or
	// taken out of service within GuardWindow without approval, if it is more than 10 %
	// of them; MaxPowerDisruptions how many may be powered off or restarted.
	MaxDisruptions            int
	MaxPowerDisruptions       int
	GuardWindow               time.Duration
	MaxConcurrentReprovisions int
	MaxConcurrentPowerOns     int
	MaxConcurrentInstalls     int // of disk images

	// BackoffMin and BackoffMax bound the pause after failures.
	BackoffMin, BackoffMax time.Duration
	// BMCNetworks are where BMCs are; others are sent nothing.
	BMCNetworks model.BMCNetworks
	// Tenants say what the files below a folder may define and use.
	Tenants model.Tenants
	// Strict says that Git is taken as a whole or not at all (git.strict). It decides nothing
	// here, and is shown to those who plan before a merge.
	Strict bool
	// PlaintextSecrets says that Git may hold secrets in plain text
	// (git.allowPlaintextSecrets). As with Strict, it decides nothing here.
	PlaintextSecrets bool
	// MACPrefixes says how to reach BMCs that have no manifest; nil = none.
	MACPrefixes *model.MACPrefixes
	// LeaseNetworks are the networks on which Ingot gives leases; nil = all that
	// devices were found on. Elsewhere the address in an Endpoint's manifest counts.
	LeaseNetworks []string
	// Credentials of MACPrefixes that a BMC refuses: at most MaxRefused of them within
	// RefusedWithin, so that its account is not locked.
	MaxRefused    int
	RefusedWithin time.Duration

	// ShowFirst makes each decision that touches a bound server wait until the status
	// branch shows it.
	ShowFirst bool
	// UnsureAfter is how long after a power request whose answer was lost it is made
	// again, if the power state did not change meanwhile; UnsureTries how often in all.
	UnsureAfter time.Duration
	UnsureTries int
	// OperationExpiry is how long an operation may wait to be begun.
	OperationExpiry time.Duration
	// StrandedAfter is how long after Ingot is there again a server is waited for that
	// was powered on while Ingot was not, before it is powered on anew.
	StrandedAfter time.Duration
	// RememberFor is how long a server is remembered that is nobody's and whose BMC a commit took
	// away: so long one that was renamed, moved or removed by mistake finds it again.
	RememberFor time.Duration
	// StartGrace is how long a process mistrusts times that were noted before it began:
	// no time-out from them that forces or fails anything is over before.
	StartGrace time.Duration
	// TrustedOff is how long a server must have been off, if its record comes from the
	// status branch, until it counts as running nothing.
	TrustedOff time.Duration
}

// WipeTimeout is CleanupTimeout of a mode.
func (p Options) WipeTimeout(mode string) time.Duration {
	if d, ok := p.CleanupTimeout[mode]; ok {
		return d
	}
	return p.CleanupTimeout[model.CleanupQuick]
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
		CleanupMode: "quick",
		CleanupTimeout: map[string]time.Duration{
			"quick": 30 * time.Minute, "secure": 24 * time.Hour,
		},
		MaxDisruptions: 3, MaxPowerDisruptions: 10, GuardWindow: time.Hour,
		MaxConcurrentReprovisions: 1, MaxConcurrentPowerOns: 10, MaxConcurrentInstalls: 50,
		UnsureAfter: 20 * time.Second, UnsureTries: 3, OperationExpiry: time.Hour,
		StrandedAfter: 3 * time.Minute, StartGrace: 5 * time.Minute, TrustedOff: 5 * time.Minute,
		RememberFor: 24 * time.Hour,
		MaxRefused:  3, RefusedWithin: 30 * time.Minute,
		BackoffMin: time.Second, BackoffMax: 5 * time.Minute,
	}
}

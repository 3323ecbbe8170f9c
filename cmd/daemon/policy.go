package daemon

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"ingot/cmd/daemon/config"
	"ingot/model"
	"ingot/reconcile/plan/policy"
)

// Policy returns what the configuration says to the plan.
func Policy(o config.Options, loaders []string) policy.Options {
	p := policy.Default()
	p.BMCNetworks, p.Tenants = o.BMC.Networks, o.Git.Tenants
	p.PlaintextSecrets = o.Git.AllowPlaintextSecrets
	p.PowerOffGrace, p.CleanupMode = o.BMC.PowerOffGrace, o.Cleanup.Mode
	p.DiscoveryImage, p.DiscoveryTimeout = o.Discovery.Image, o.Discovery.Timeout
	p.MaxDisruptions, p.MaxPowerDisruptions, p.GuardWindow = o.Guard.MaxDisruptions, o.Guard.MaxPowerDisruptions, o.Guard.Window
	p.MaxConcurrentReprovisions, p.MaxConcurrentPowerOns = o.Guard.MaxConcurrentReprovisions, o.Guard.MaxConcurrentPowerOns
	p.PollInterval = cmp.Or(o.Tuning.PollInterval, p.PollInterval)
	p.MaxConcurrentInstalls = cmp.Or(o.Tuning.MaxInstalls, p.MaxConcurrentInstalls)
	p.ShowFirst = true
	p.LoaderArchitectures = loaders
	p.LeaseNetworks = o.LeaseNetworks()
	if o.Tuning.Fast {
		p.Settle, p.SettleMax, p.ConfirmEvery = 5*time.Millisecond, 250*time.Millisecond, 5*time.Millisecond
		p.UnsureAfter, p.StrandedAfter, p.StartGrace, p.TrustedOff = time.Second, 2*time.Second, time.Second, time.Second
		// A test that waits for these sets a short discovery.timeout.
		p.BootTimeout = min(p.BootTimeout, p.DiscoveryTimeout/2)
		p.PowerOnLimit, p.PowerPause = min(p.PowerOnLimit, p.BootTimeout), min(p.PowerPause, p.BootTimeout/2)
		p.ScriptPatience = min(p.ScriptPatience, p.BootTimeout/2)
		p.FoundOffTime, p.BootGrace, p.RememberFor = time.Second, 5*time.Second, 5*time.Second
	}
	return p
}

// macPrefixes reads the MAC prefix database. It returns nil without one.
func (d *daemon) macPrefixes() (*model.MACPrefixes, error) {
	file := d.opts.Discovery.MACPrefixesFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil // warnFiles has said it
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		d.log.Warn("every user of this machine can read the MAC prefix database, which contains passwords: chmod o-r", "file", file)
	}
	prefixes, problems := model.DecodeMACPrefixes(file, data, d.registry.TokenKey)
	if err := model.JoinErrors(problems); err != nil {
		return nil, fmt.Errorf("discovery.macPrefixesFile: %w", err)
	}
	return prefixes, nil
}

package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"ingot/model"
)

// Options describe a rack. The zero value is one BMC with one server, without
// delays, on 127.0.0.1.
type Options struct {
	BMCs          int // 1 when 0
	SystemsPerBMC int // 1 when 0
	// Host is the IP address that the BMCs listen on, 127.0.0.1 when empty.
	Host string
	// Port is the one that the first BMC listens on, and each further BMC on the
	// next; any that are free when 0.
	Port int
	// Username and Password open every BMC; "admin" and "ingot-sim" when empty.
	Username string
	Password model.Sensitive
	// BootURL is the boot service that the machines' firmware finds, as a real one
	// learns it by DHCP: http://127.0.0.1:8082. SetBootURL sets it later.
	BootURL string
	// HostNetwork, a prefix of this machine's own addresses such as 127.64.0.0/16, has each
	// pretended machine ask from an address of its own, HostAddress; without it they all
	// ask from wherever this process does.
	HostNetwork netip.Prefix
	Delays      Delays
	// Personality is one of Personalities, "generic" when empty.
	Personality string
	// SessionLimit is how many Redfish sessions a BMC keeps open, those of its personality
	// when 0.
	SessionLimit int
	// Seed makes another rack of the same shape: other UUIDs, MACs and serials.
	Seed int64
	// UUIDs are those of the first servers, in the order of Rack.Servers; others have made-up
	// ones.
	UUIDs []string
	// StateDir, if set, keeps disks, power, addresses and certificates, so that
	// a rack made again is the same rack.
	StateDir string
	// Machines, if set, are behind the BMCs in place of pretended ones, in the order of
	// Rack.Servers: see package qemu.
	Machines Machines
	Log      *slog.Logger // nil = no log
}

// Delays are how long the rack takes. Virtual machines take their own time: for
// them there are only PowerOn, Request and Settle.
type Delays struct {
	PowerOn  time.Duration // from the request to PowerState On
	PowerOff time.Duration // for an operating system to shut down
	Firmware time.Duration // from power to the first boot attempt
	Boot     time.Duration // from the kernel's start to the probe's first word or the boot state
	Wipe     time.Duration // of all disks
	Write    time.Duration // of a disk image
	Request  time.Duration // added to each Redfish answer
	// ProbeRestart is the time after which systemd restarts a failed probe, 20 s
	// when 0; ProbeRepeat the one between two registrations, 30 s when 0.
	ProbeRestart time.Duration
	ProbeRepeat  time.Duration
	// NetworkRetry is how long the firmware waits before it asks again a boot server
	// that does not answer.
	NetworkRetry time.Duration
	// Settle is how long after its start the firmware of a QEMU virtual machine may reset
	// the machine once more without that being another boot, 2 s when 0.
	Settle time.Duration
}

// DefaultDelays are long enough to watch: a few seconds from power to probe.
func DefaultDelays() Delays {
	return Delays{
		PowerOn: time.Second, PowerOff: time.Second, Firmware: 500 * time.Millisecond,
		Boot: 1500 * time.Millisecond, Wipe: 1500 * time.Millisecond, Write: 4 * time.Second, ProbeRestart: 5 * time.Second,
		NetworkRetry: time.Second,
	}
}

// FastDelays are for tests and benchmarks: all 0 but half a second of booting, and
// what a machine waits before it tries again.
func FastDelays() Delays {
	return Delays{Boot: 500 * time.Millisecond, ProbeRestart: 250 * time.Millisecond, NetworkRetry: 250 * time.Millisecond}
}

// MaxBMCs is the largest rack that the simulated MAC addresses and IP addresses suffice for.
const MaxBMCs = 8192

const maxSystemsPerBMC = 64

// withDefaults returns o with what was left out filled in.
func (o Options) withDefaults() Options {
	o.BMCs = orDefault(o.BMCs, 1)
	o.SystemsPerBMC = orDefault(o.SystemsPerBMC, 1)
	o.Host = orDefault(o.Host, "127.0.0.1")
	o.Username = orDefault(o.Username, "admin")
	o.Password = orDefault(o.Password, model.NewSensitive("ingot-sim"))
	o.Personality = orDefault(o.Personality, "generic")
	o.Delays.ProbeRestart = orDefault(o.Delays.ProbeRestart, 20*time.Second)
	o.Delays.ProbeRepeat = orDefault(o.Delays.ProbeRepeat, 30*time.Second)
	o.Delays.Settle = orDefault(o.Delays.Settle, 2*time.Second)
	o.Log = orDefault(o.Log, slog.New(slog.DiscardHandler))
	return o
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// validate says what is wrong with o, whose defaults are filled in.
func (o Options) validate() error {
	var errs []error
	if o.BMCs < 1 || o.BMCs > MaxBMCs {
		errs = append(errs, fmt.Errorf("%d BMCs: 1 to %d are possible", o.BMCs, MaxBMCs))
	}
	if o.SystemsPerBMC < 1 || o.SystemsPerBMC > maxSystemsPerBMC {
		errs = append(errs, fmt.Errorf("%d systems per BMC: 1 to %d are possible", o.SystemsPerBMC, maxSystemsPerBMC))
	}
	if _, err := netip.ParseAddr(o.Host); err != nil {
		errs = append(errs, fmt.Errorf("host %q: not an IP address", o.Host))
	}
	if o.Port < 0 || o.Port != 0 && o.Port+o.BMCs-1 > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("port %d: each BMC needs one of its own, from there to %d", o.Port, math.MaxUint16))
	}
	if o.SessionLimit < 0 {
		errs = append(errs, fmt.Errorf("session limit %d: it cannot be negative", o.SessionLimit))
	}
	if _, ok := personalities[o.Personality]; !ok {
		errs = append(errs, unknownPersonality(o.Personality))
	}
	if o.BootURL != "" {
		errs = append(errs, checkBootURL(o.BootURL))
	}
	if n := o.HostNetwork; n.IsValid() && (!n.Addr().Is4() || 1<<(32-n.Bits()) < o.BMCs*o.SystemsPerBMC+2) {
		errs = append(errs, fmt.Errorf("host network %s: one of IPv4 with an address for each server is needed", n))
	}
	if o.Machines != nil {
		errs = append(errs, o.Machines.Check(o.BMCs*o.SystemsPerBMC))
	}
	return errors.Join(errs...)
}

func unknownPersonality(name string) error {
	hint := ""
	if near := model.Nearest(name, Personalities()); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Errorf("personality %q: %sknown are %s", name, hint, strings.Join(Personalities(), ", "))
}

func checkBootURL(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("boot URL %q: want one such as http://127.0.0.1:8082", base)
	}
	return nil
}

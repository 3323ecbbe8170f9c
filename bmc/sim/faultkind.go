package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

type scope string

const (
	scopeBMC    scope = "bmc"
	scopeServer scope = "server"
)

// FaultKind says what a fault is.
type FaultKind struct {
	Name  Fault  `json:"name"`
	Of    scope  `json:"of"` // what it befalls
	About string `json:"about"`
	// Takes are the arguments that it has.
	Takes []string `json:"takes,omitempty"`
	// also is another name that it is known by.
	also Fault
	// pretended: it is one of what a pretended machine runs.
	pretended bool
}

// faultKinds are all faults there are, in the order of their names.
var faultKinds = []FaultKind{
	{Name: FaultBladesSwapped, Of: scopeBMC, About: "the machines are in each other's places"},
	{Name: FaultBootOrderInSettings, Of: scopeServer, About: "a boot order is accepted only in the settings object, for the next boot"},
	{Name: FaultBootOrderNotKept, Of: scopeServer, About: "a boot order is accepted and not kept"},
	{Name: FaultBootStateSilent, Of: scopeServer, About: "an installed system does not post its boot state", pretended: true},
	{Name: FaultCloudInitFails, Of: scopeServer, About: "cloud-init ends in error on an installed system", pretended: true},
	{Name: FaultCollectionEmpty, Of: scopeBMC, About: "collections say how many members they have and list none"},
	{Name: FaultConfiguresItself, Of: scopeServer, About: "a kernel from the network asks for no Ignition", pretended: true},
	{Name: FaultDiskHidden, Of: scopeServer, About: "a disk is not seen by what runs on the server", Takes: []string{"disk"}, pretended: true},
	{Name: FaultDiskHolds, Of: scopeServer, About: "a disk holds unknown data", Takes: []string{"disk"}, pretended: true},
	{Name: FaultDiskOptionOff, Of: scopeServer, About: "the disk's boot option is off until the BMC is told to switch it on", pretended: true},
	{Name: FaultDiskSmall, Of: scopeServer, About: "a disk has no more than 1 MiB", Takes: []string{"disk"}, pretended: true},
	{Name: FaultDropSessions, Of: scopeBMC, About: "sessions are dropped, immediately or after a number of requests", Takes: []string{"requests"}},
	{Name: FaultDuplicateLabels, Of: scopeServer, About: "a disk has the labels of the disk image for another", Takes: []string{"disk"}, pretended: true},
	{Name: FaultFalseOff, Of: scopeServer, About: "the power state reads Off, for a number of readings if given", Takes: []string{"requests"}},
	{Name: FaultGracefulIgnored, Of: scopeServer, About: "the operating system ignores graceful requests"},
	{Name: FaultGzip, Of: scopeBMC, About: "responses are compressed without being requested, and their ETags match nothing"},
	{Name: FaultHang, Of: scopeBMC, About: "requests are accepted and never answered"},
	{Name: FaultHangAfterKernel, Of: scopeServer, About: "a network boot hangs once the kernel is fetched", pretended: true},
	{Name: FaultHangAfterScript, Of: scopeServer, About: "a network boot hangs once the script is fetched", pretended: true},
	{Name: FaultHTML, Of: scopeBMC, About: "requests are answered with 200 and a web page"},
	{Name: FaultIndicatorNotKept, Of: scopeServer, About: "an indicator setting is accepted and not kept"},
	{Name: FaultInstallHangs, Of: scopeServer, About: "writing a disk image stops half way", pretended: true},
	{Name: FaultInstallCut, Of: scopeServer, About: "the power fails half way through writing a disk image", Takes: []string{"requests"}, pretended: true},
	{Name: FaultMACsHidden, Of: scopeServer, About: "network interfaces show no MAC addresses"},
	{Name: FaultNewAddress, Of: scopeBMC, About: "the BMC moves to another port once"},
	{Name: FaultNewCertificate, Of: scopeBMC, About: "the BMC changes its certificate once"},
	{Name: FaultNoSystems, Of: scopeBMC, About: "the collection of systems is empty"},
	{Name: FaultNotFound, Of: scopeBMC, About: "everything but the service root is answered with 404"},
	{Name: FaultOKError, Of: scopeBMC, About: "reads are answered with 200 and an error"},
	{Name: FaultOverrideIgnored, Of: scopeServer, About: "the firmware clears a boot override and does not follow it"},
	{Name: FaultOverrideInSettings, Of: scopeServer, About: "a boot override is accepted only in the settings object"},
	{Name: FaultOverrideNeedsMode, Of: scopeServer, About: "a boot override without its mode is refused"},
	{Name: FaultOverrideNotKept, Of: scopeServer, About: "a boot override is accepted and not kept"},
	{Name: FaultPaging, Of: scopeBMC, About: "collections come in pages of size members (1)", Takes: []string{"size"}},
	{Name: FaultPatchLag, Of: scopeServer, About: "written values are shown after delay (3s)", Takes: []string{"delay"}},
	{Name: FaultPowerCut, Of: scopeBMC, About: "the power fails, and the BMC starts in stages of delay (10s) each", Takes: []string{"delay"}},
	{Name: FaultPowerFlaps, Of: scopeServer, About: "every other power reading is wrong for delay (3s) after a reset", Takes: []string{"delay"}},
	{Name: FaultPowerOffIgnored, Of: scopeServer, About: "requests to power off are accepted and ignored"},
	{Name: FaultPowerOnIgnored, Of: scopeServer, About: "requests to power on are accepted and ignored"},
	{Name: FaultProbeOtherUUID, Of: scopeServer, About: "the probe reports as another machine", Takes: []string{"uuid"}, pretended: true},
	{Name: FaultProbeSilent, Of: scopeServer, About: "the probe runs and never reports", pretended: true},
	{Name: FaultRefuse, Of: scopeBMC, About: "connections are refused"},
	{Name: FaultResetDropped, Of: scopeServer, About: "a reset is carried out and its answer is lost", Takes: []string{"requests"}, also: "reset-executed-answer-lost"},
	{Name: FaultResetHangs, Of: scopeServer, About: "a reset is carried out and not answered", Takes: []string{"requests"}},
	{Name: FaultResetFails, Of: scopeServer, About: "a reset is carried out and answered with 500", Takes: []string{"requests"}},
	{Name: FaultResetLate, Of: scopeServer, About: "a reset is accepted and carried out after delay (2s)", Takes: []string{"delay", "requests"}},
	{Name: FaultSectors4K, Of: scopeServer, About: "a disk has 4096-byte sectors", Takes: []string{"disk"}, pretended: true},
	{Name: FaultSecureBoot, Of: scopeServer, About: "the BMC says that Secure Boot is on"},
	{Name: FaultServerError, Of: scopeBMC, About: "everything but the service root is answered with 500"},
	{Name: FaultSessionLimit, Of: scopeBMC, About: "logins are answered with 503"},
	{Name: FaultSlow, Of: scopeBMC, About: "each answer takes delay (2s)", Takes: []string{"delay"}},
	{Name: FaultSlowPart, Of: scopeBMC, About: "each answer with part (Storage) in its path takes delay (10s)", Takes: []string{"delay", "part"}},
	{Name: FaultUnauthorized, Of: scopeBMC, About: "credentials are refused"},
	{Name: FaultUnavailable, Of: scopeBMC, About: "requests are answered with 503"},
	{Name: FaultUUIDMissing, Of: scopeServer, About: "the system has no UUID"},
	{Name: FaultUUIDSwapped, Of: scopeServer, About: "the system shows another machine's UUID", Takes: []string{"uuid"}},
	{Name: FaultUUIDZero, Of: scopeServer, About: "the system's UUID is all zeros"},
	{Name: FaultVerifiedCut, Of: scopeServer, About: "the power fails once a disk image is written, before it is reported", Takes: []string{"requests"}, pretended: true},
	{Name: FaultWipeFails, Of: scopeServer, About: "the wipe of a disk fails", Takes: []string{"disk"}, pretended: true},
	{Name: FaultWipeHangs, Of: scopeServer, About: "a wipe stops half way", pretended: true},
	{Name: FaultWriteFails, Of: scopeServer, About: "writing a disk image to a disk fails half way", Takes: []string{"disk"}, pretended: true},
}

// FaultKinds are all faults there are, in the order of their names.
func FaultKinds() []FaultKind { return slices.Clone(faultKinds) }

// Faults are the names of all faults, sorted.
func Faults() []Fault {
	names := make([]Fault, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = k.Name
	}
	return names
}

// OfPretended reports whether f befalls pretended machines only.
func (f Fault) OfPretended() bool {
	k, _ := kindOf(f)
	return k.pretended
}

// kindOf finds a fault by its name, or by the other that it has.
func kindOf(f Fault) (FaultKind, error) {
	for _, k := range faultKinds {
		if f != "" && (k.Name == f || k.also == f) {
			return k, nil
		}
	}
	names := make([]string, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = string(k.Name)
	}
	if near := model.Nearest(string(f), names); near != "" {
		return FaultKind{}, fmt.Errorf("there is no fault %q: did you mean %s?", string(f), near)
	}
	return FaultKind{}, fmt.Errorf("there is no fault %q: there are %s", string(f), strings.Join(names, ", "))
}

func (k FaultKind) check(args []FaultArgs) (FaultArgs, error) {
	switch {
	case len(args) > 1:
		return FaultArgs{}, fmt.Errorf("fault %s: arguments are given at most once", k.Name)
	case len(args) == 0:
		return FaultArgs{}, nil
	case args[0].Delay < 0 || args[0].Requests < 0 || args[0].Size < 0:
		return FaultArgs{}, fmt.Errorf("fault %s: a delay, a size or a number of requests cannot be negative", k.Name)
	case args[0].Delay > maxDelay:
		return FaultArgs{}, fmt.Errorf("fault %s: a delay of %v is more than %v", k.Name, args[0].Delay, maxDelay)
	}
	return args[0], nil
}

// maxDelay is the longest delay of a fault.
const maxDelay = time.Hour

// FaultSetting is a fault that is to be set.
type FaultSetting struct {
	On    string // a BMC or a server; "" is every BMC
	Fault Fault
	FaultArgs
}

// ParseFault reads a fault as it is written on a command line: its name, then arguments.
//
//	slow,delay=5s
//	reset-answer-dropped,on=rack1-bmc-01-system-0,requests=1
func ParseFault(text string) (FaultSetting, error) {
	name, rest, more := strings.Cut(text, ",")
	kind, err := kindOf(Fault(name))
	if err != nil {
		return FaultSetting{}, err
	}
	f := FaultSetting{Fault: kind.Name}
	for more {
		var arg string
		arg, rest, more = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(arg, "=")
		if key == "on" {
			f.On = value
			continue
		}
		if err := f.set(kind, key, value); err != nil {
			return FaultSetting{}, fmt.Errorf("fault %s: %w", kind.Name, err)
		}
	}
	_, err = kind.check([]FaultArgs{f.FaultArgs})
	return f, err
}

func (a *FaultArgs) set(kind FaultKind, key, value string) (err error) {
	if !slices.Contains(kind.Takes, key) {
		return fmt.Errorf("there is no argument %q: it takes %s", key, strings.Join(append([]string{"on"}, kind.Takes...), ", "))
	}
	switch key {
	case "delay":
		a.Delay, err = time.ParseDuration(value)
	case "requests":
		a.Requests, err = strconv.Atoi(value)
	case "disk":
		a.Disk, err = strconv.Atoi(value)
	case "size":
		a.Size, err = strconv.Atoi(value)
	case "uuid":
		a.UUID = value
	case "part":
		a.Part = value
	}
	if err != nil {
		want := "a number such as 3"
		if key == "delay" {
			want = "one such as 500ms or 2s"
		}
		return fmt.Errorf("%s %q: want %s", key, value, want)
	}
	return nil
}

// SetFault sets a fault on what it is to be on.
func (r *Rack) SetFault(f FaultSetting) error {
	if f.On != "" {
		t, err := r.target(f.On)
		if err != nil {
			return err
		}
		return t.SetFault(f.Fault, f.FaultArgs)
	}
	var errs []error
	for _, b := range r.bmcs {
		errs = append(errs, b.SetFault(f.Fault, f.FaultArgs))
	}
	return errors.Join(errs...)
}

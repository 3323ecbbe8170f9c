package sim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fault is a way in which a BMC or a server misbehaves.
type Fault string

// Faults of a BMC.
const (
	// FaultRefuse makes the BMC refuse connections and drops those it has.
	FaultRefuse Fault = "refuse"
	// FaultHang makes the BMC take requests and never answer.
	FaultHang Fault = "hang"
	// FaultUnauthorized makes the BMC answer 401 to all but the public resources,
	// whatever the credentials.
	FaultUnauthorized Fault = "unauthorized"
	// FaultDropSessions makes the BMC forget its sessions: at once and once, or,
	// with FaultArgs.Requests, each session after so many requests.
	FaultDropSessions Fault = "drop-sessions"
	// FaultSessionLimit makes the BMC answer 503 to each login, as when all its
	// sessions are taken.
	FaultSessionLimit Fault = "session-limit"
	// FaultSlow delays each answer by FaultArgs.Delay, 2 s when 0.
	FaultSlow Fault = "slow"
	// FaultServerError makes the BMC answer 500 to all but the service root.
	FaultServerError Fault = "server-error"
	// FaultNewCertificate gives the BMC another certificate, at once and once.
	FaultNewCertificate Fault = "new-certificate"
	// FaultHTML makes the BMC answer every request with 200 and a web page.
	FaultHTML Fault = "html"
	// FaultUnavailable makes the BMC answer every request with 503.
	FaultUnavailable Fault = "unavailable"
	// FaultNotFound makes the BMC answer 404 to all but the public resources.
	FaultNotFound Fault = "not-found"
	// FaultPowerCut takes the mains away from the BMC and its machines for FaultArgs.Delay, 10 s
	// when 0. The BMC then passes through the stages of its start, each for as long.
	FaultPowerCut Fault = "power-cut"
	// FaultOKError makes the BMC answer reads with 200 and an error, but for those of the
	// public resources.
	FaultOKError Fault = "ok-error"
	// FaultBladesSwapped puts the BMC's machines into each other's places, the first into
	// that of the last.
	FaultBladesSwapped Fault = "blades-swapped"
	// FaultNoSystems makes the collection of systems empty.
	FaultNoSystems Fault = "no-systems"
	// FaultCollectionEmpty leaves the members out of each collection, but not how many
	// they are.
	FaultCollectionEmpty Fault = "collection-empty"
	// FaultNewAddress moves the BMC to another port, at once and once.
	FaultNewAddress Fault = "new-address"
	// FaultSlowPart delays each answer below a path that has FaultArgs.Part in it, "Storage"
	// when empty, by FaultArgs.Delay, 10 s when 0.
	FaultSlowPart Fault = "slow-part"
	// FaultGzip makes the BMC compress each answer, whether or not that was asked for, and
	// add -gzip to the ETag in its header, which then matches nothing, as some web servers
	// in front of BMCs do.
	FaultGzip Fault = "gzip"
	// FaultPaging makes the BMC answer collections in pages of FaultArgs.Size members, 1
	// when 0.
	FaultPaging Fault = "paging"
)

// Faults of a server. Set on a BMC they are faults of all its servers.
const (
	// FaultOverrideNotKept makes the BMC accept a boot override and not keep it.
	FaultOverrideNotKept Fault = "override-not-kept"
	// FaultOverrideIgnored makes the firmware clear a boot override and not follow it.
	FaultOverrideIgnored Fault = "override-ignored"
	// FaultOverrideNeedsMode refuses an override without BootSourceOverrideMode.
	FaultOverrideNeedsMode Fault = "override-needs-mode"
	// FaultOverrideInSettings refuses an override but in the settings object.
	FaultOverrideInSettings Fault = "override-in-settings"
	// FaultIndicatorNotKept makes the BMC accept what its indicator is to show and not keep it.
	FaultIndicatorNotKept Fault = "indicator-not-kept"
	// FaultBootOrderNotKept makes the BMC accept a persistent boot order and not keep it.
	FaultBootOrderNotKept Fault = "boot-order-not-kept"
	// FaultBootOrderInSettings makes the BMC take a persistent boot order in the settings object
	// alone, for the next start.
	FaultBootOrderInSettings Fault = "boot-order-in-settings"
	// FaultDiskOptionOff switches the boot option of the disk off, so that the firmware boots from the
	// network alone, whatever it is told, until the option is switched on by the BMC, which ends the fault.
	FaultDiskOptionOff Fault = "disk-option-off"
	// FaultGracefulIgnored makes the operating system ignore graceful requests.
	FaultGracefulIgnored Fault = "graceful-ignored"
	// FaultPowerOffIgnored makes the BMC accept requests to power off, forced ones
	// too, and do nothing.
	FaultPowerOffIgnored Fault = "power-off-ignored"
	// FaultPowerOnIgnored makes the BMC accept requests to power on and do nothing.
	FaultPowerOnIgnored Fault = "power-on-ignored"
	// FaultPowerFlaps makes every other reading of the power state wrong for
	// FaultArgs.Delay after a reset, 3 s when 0.
	FaultPowerFlaps Fault = "power-flaps"
	// FaultUUIDMissing leaves the UUID out of the ComputerSystem.
	FaultUUIDMissing Fault = "uuid-missing"
	// FaultUUIDZero makes the ComputerSystem's UUID all zeros.
	FaultUUIDZero Fault = "uuid-zero"
	// FaultMACsHidden leaves the MAC addresses out of the EthernetInterfaces.
	FaultMACsHidden Fault = "macs-hidden"
	// FaultUUIDSwapped shows the UUID FaultArgs.UUID, or that of the next server of the
	// rack, as when blades were swapped.
	FaultUUIDSwapped Fault = "uuid-swapped"
	// FaultFalseOff makes the power state read Off, FaultArgs.Requests times, or until it
	// is cleared when 0.
	FaultFalseOff Fault = "false-off"
	// FaultResetFails carries a reset out and answers 500. It befalls the next
	// FaultArgs.Requests resets, or all when 0, as those below do.
	FaultResetFails Fault = "reset-answers-500"
	// FaultResetDropped carries a reset out and closes the connection.
	FaultResetDropped Fault = "reset-answer-dropped"
	// FaultResetHangs carries a reset out and does not answer while the fault is set.
	FaultResetHangs Fault = "reset-answer-hangs"
	// FaultResetLate accepts a reset and carries it out after FaultArgs.Delay, 2 s when 0.
	FaultResetLate Fault = "reset-late"
	// FaultPatchLag makes the BMC show what was written only after FaultArgs.Delay, 3 s
	// when 0. It is in force at once.
	FaultPatchLag Fault = "patch-lag"
	// FaultWipeFails makes the wipe of disk FaultArgs.Disk (from 0) fail.
	FaultWipeFails Fault = "wipe-fails"
	// FaultWipeHangs makes a wipe come half way and no further.
	FaultWipeHangs Fault = "wipe-hangs"
	// FaultDiskHidden hides disk FaultArgs.Disk (from 0) from what runs on the server, as
	// a controller does that fails; the BMC still shows it.
	FaultDiskHidden Fault = "disk-hidden"
	// FaultDiskSmall makes disk FaultArgs.Disk have no more than 1 MiB.
	FaultDiskSmall Fault = "disk-small"
	// FaultInstallHangs makes the writing of a disk image come half way and no further.
	FaultInstallHangs Fault = "install-hangs"
	// FaultInstallCut makes the power fail half way through the writing of a disk image,
	// FaultArgs.Requests times, or each time when 0. FaultVerifiedCut does once all is written,
	// before that is reported.
	FaultInstallCut  Fault = "install-power-cut"
	FaultVerifiedCut Fault = "verified-power-cut"
	// FaultWriteFails makes writing to disk FaultArgs.Disk (from 0) fail half way.
	FaultWriteFails Fault = "write-fails"
	// FaultDuplicateLabels gives disk FaultArgs.Disk the labels of whatever disk image is to
	// be written to another.
	FaultDuplicateLabels Fault = "duplicate-labels"
	// FaultDiskHolds has something on disk FaultArgs.Disk that nobody knows of.
	FaultDiskHolds Fault = "disk-holds-data"
	// FaultSectors4K makes the sectors of disk FaultArgs.Disk have 4096 bytes.
	FaultSectors4K Fault = "sectors-4k"
	// FaultProbeSilent makes the probe run and never report.
	FaultProbeSilent Fault = "probe-silent"
	// FaultProbeOtherUUID makes the probe report as FaultArgs.UUID, or as a UUID
	// that is no server's.
	FaultProbeOtherUUID Fault = "probe-other-uuid"
	// FaultHangAfterScript makes a boot hang once the iPXE script is fetched.
	FaultHangAfterScript Fault = "hang-after-script"
	// FaultHangAfterKernel makes a boot hang once the kernel is fetched.
	FaultHangAfterKernel Fault = "hang-after-kernel"
	// FaultConfiguresItself has a kernel from the network install what it brings along,
	// and ask for no Ignition, as installers do with a configuration of their own.
	FaultConfiguresItself Fault = "configures-itself"
	// FaultBootStateSilent keeps an installed system from posting its boot state.
	FaultBootStateSilent Fault = "bootstate-silent"
	// FaultSecureBoot has the BMC say that Secure Boot is on.
	FaultSecureBoot Fault = "secure-boot"
	// FaultCloudInitFails has cloud-init end in error on an installed system.
	FaultCloudInitFails Fault = "cloud-init-fails"
)

// FaultArgs say more about some faults.
type FaultArgs struct {
	Delay    time.Duration
	Requests int
	Disk     int
	UUID     string
	Part     string // of a path
	Size     int    // of a page
}

// faults are those that are set on one BMC or server.
type faults struct {
	mu  sync.Mutex
	set map[Fault]FaultArgs // nil when none is
	// cleared is closed when a fault is cleared, for those who hang on it.
	cleared chan struct{}
}

func (f *faults) get(fault Fault) (FaultArgs, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	args, ok := f.set[fault]
	return args, ok
}

// use is get for a fault that ends by itself after FaultArgs.Requests uses, if that is
// not 0.
func (f *faults) use(fault Fault) (FaultArgs, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	args, ok := f.set[fault]
	switch {
	case !ok || args.Requests == 0:
	case args.Requests == 1:
		delete(f.set, fault)
	default:
		left := args
		left.Requests--
		f.set[fault] = left
	}
	return args, ok
}

func (f *faults) has(fault Fault) bool {
	_, ok := f.get(fault)
	return ok
}

func (f *faults) put(fault Fault, args FaultArgs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = make(map[Fault]FaultArgs)
	}
	f.set[fault] = args
}

// remove clears a fault and lets go those that hang on it.
func (f *faults) remove(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.set, fault)
	if f.cleared != nil {
		close(f.cleared)
		f.cleared = nil
	}
}

// until returns a channel that is closed when fault may be gone, nil when it is
// not set.
func (f *faults) until(fault Fault) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.set[fault]; !ok {
		return nil
	}
	if f.cleared == nil {
		f.cleared = make(chan struct{})
	}
	return f.cleared
}

func (f *faults) list() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.set))
}

// SetFault makes the BMC misbehave. A fault of a server is one of all servers of
// the BMC. FaultRefuse and FaultNewAddress fail when the BMC cannot be moved.
func (b *BMC) SetFault(fault Fault, args ...FaultArgs) error {
	kind, err := kindOf(fault)
	if err != nil {
		return err
	}
	fault = kind.Name
	a, err := kind.check(args)
	if err != nil {
		return err
	}
	if kind.Of == scopeServer {
		return b.setOnServers(fault, a)
	}
	b.rack.opts.Log.Info("fault set", "bmc", b.name, "fault", string(fault))
	switch {
	case fault == FaultDropSessions && a.Requests == 0:
		b.sessions.clear()
		return nil
	case fault == FaultNewCertificate:
		return b.renewCertificate()
	case fault == FaultNewAddress:
		return b.move()
	case fault == FaultPowerCut:
		return b.cutPower(a)
	}
	b.faults.put(fault, a)
	if fault == FaultRefuse {
		b.unlisten()
	}
	return nil
}

// setOnServers makes all servers misbehave, or none.
func (b *BMC) setOnServers(fault Fault, a FaultArgs) error {
	for _, s := range b.servers {
		if err := s.suffers(fault, a); err != nil {
			return err
		}
	}
	for _, s := range b.servers {
		s.faults.put(fault, a)
	}
	return nil
}

// ClearFault ends a fault; one that is not set is no error. Clearing FaultRefuse
// fails when somebody else has taken the BMC's port meanwhile.
func (b *BMC) ClearFault(fault Fault) error {
	kind, err := kindOf(fault)
	if err != nil {
		return err
	}
	fault = kind.Name
	if kind.Of == scopeServer {
		for _, s := range b.servers {
			s.faults.remove(fault)
		}
		return nil
	}
	was := b.faults.has(fault)
	if was && fault == FaultPowerCut {
		return b.endPowerCut()
	}
	b.faults.remove(fault)
	if was && fault == FaultRefuse {
		return b.reopen()
	}
	return nil
}

// Faults are the faults that are set on the BMC itself, sorted.
func (b *BMC) Faults() []Fault { return b.faults.list() }

// SetFault makes the server misbehave; a fault of a BMC is to be set there.
func (s *Server) SetFault(fault Fault, args ...FaultArgs) error {
	kind, err := kindOf(fault)
	if err != nil {
		return err
	}
	fault = kind.Name
	a, err := kind.check(args)
	if err != nil {
		return err
	}
	if kind.Of != scopeServer {
		return fmt.Errorf("fault %s is one of a BMC: set it on %s", fault, s.bmc.name)
	}
	if err := s.suffers(fault, a); err != nil {
		return err
	}
	s.rack().opts.Log.Info("fault set", "server", string(s.name), "fault", string(fault))
	s.faults.put(fault, a)
	return nil
}

// ClearFault ends a fault; one that is not set is no error.
func (s *Server) ClearFault(fault Fault) error {
	kind, err := kindOf(fault)
	if err != nil {
		return err
	}
	s.faults.remove(kind.Name)
	return nil
}

// Faults are the faults that are set on the server, sorted.
func (s *Server) Faults() []Fault { return s.faults.list() }

// suffers returns nil if the server can have the fault, or why not.
func (s *Server) suffers(fault Fault, a FaultArgs) error {
	disks := len(s.build.Hardware.Drives)
	switch {
	case slices.Contains(diskFaults, fault) && (a.Disk < 0 || a.Disk >= disks):
		return fmt.Errorf("fault %s: server %s has %d disks, numbered from 0, and no disk %d", fault, s.name, disks, a.Disk)
	case (fault == FaultOverrideInSettings || fault == FaultBootOrderInSettings) && s.rack().kind.boot.settings == "":
		return fmt.Errorf("fault %s: the personality %s has no settings object", fault, s.rack().opts.Personality)
	}
	return s.machine.Suffers(fault)
}

// diskFaults are those of one disk.
var diskFaults = []Fault{FaultWipeFails, FaultDiskHidden, FaultWriteFails, FaultDuplicateLabels, FaultDiskHolds, FaultDiskSmall, FaultSectors4K}

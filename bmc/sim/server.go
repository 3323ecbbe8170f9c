package sim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/model"
)

// history is how many boots, resets and installs a server remembers.
const history = 24

// Server is one simulated machine.
type Server struct{ mainboard }

// A mainboard is the state of a machine, and changes its power and its boots.
type mainboard struct {
	bmc    *BMC
	index  int
	id     string // of the ComputerSystem
	name   model.ServerName
	uuid   string
	serial string
	model  string
	faults faults
	build  Build        // what the machine is made of
	own    *http.Client // that asks from HostAddress; nil = the rack's

	machine Machine
	virtual Virtual // the machine as one, nil if it is pretended

	mu           sync.Mutex
	networkFirst bool
	nextFirst    *bool // what the next start makes of networkFirst; nil = nothing is pending
	power        model.Power
	system       system // what runs on it
	override     bootOverride
	disk         *Disk              // the system that its firmware boots, nil when there is none
	contents     map[string]Content // of the disks that disk images were written to, by serial number
	seed         *model.InstallSeed // of disk, nil if it has none
	said         bool               // what is on disk has posted its boot state
	assetTag     string
	indicator    string
	lastReset    time.Time
	progress     string // BootProgress.LastState
	readings     int    // of the power state, while it flaps
	lag          lag

	// life counts lives: from power, or a restart, to the next or to darkness.
	// What belongs to an earlier life has no effect any more.
	life uint64
	stop context.CancelFunc // ends the present life's work; nil when it has none

	powerOns int
	boots    ring[BootRecord]
	resets   ring[ResetRecord]
	installs ring[Install]
	events   []Event
	cause    cause // of the next power change
}

// system is what runs on a machine.
type system string

const (
	systemNone  system = ""
	systemProbe system = "probe"
	systemOS    system = "os"
	// systemGuest is what only the guest of a virtual machine knows.
	systemGuest system = "guest"
)

// Disk is what is installed on a server.
type Disk struct {
	Image          string    `json:"image"` // digest of the kernel, "sha256:<hex>", or what SetRunning was given
	IgnitionSHA256 string    `json:"ignitionSHA256,omitempty"`
	InstalledAt    time.Time `json:"installedAt"`
	// Serial is the serial number of the disk that a disk image was written to; Image is then
	// the digest of that.
	Serial string `json:"serial,omitempty"`
}

// Install is an image that was written to a server's disk.
type Install struct {
	Image          string    `json:"image"`
	IgnitionSHA256 string    `json:"ignitionSHA256,omitempty"`
	At             time.Time `json:"at"`
	Serial         string    `json:"serial,omitempty"` // as Disk.Serial
}

// BootSource is what a boot came from.
type BootSource string

// The boot sources.
const (
	BootFromNetwork BootSource = "network"
	BootFromDisk    BootSource = "disk"
	BootFromNothing BootSource = "none"
)

// Outcome is what a boot came to.
type Outcome string

// The outcomes. A boot under way has none.
const (
	OutcomeProbe     Outcome = "probe"     // metalprobe runs
	OutcomeInstalled Outcome = "installed" // an image from the network runs and is on the disk
	OutcomeDisk      Outcome = "disk"      // what is on the disk runs
	OutcomeNoDevice  Outcome = "no bootable device"
	OutcomeFailed    Outcome = "failed" // the kernel runs and gets no further
	OutcomeHung      Outcome = "hung"   // by a fault
	OutcomeCut       Outcome = "cut"    // power or a reset ended it
	OutcomeEnded     Outcome = "ended"  // a virtual machine's guest switched off or restarted by itself
)

// BootRecord is one boot.
type BootRecord struct {
	At     time.Time         `json:"at"`
	From   BootSource        `json:"from"`
	Stages []model.BootStage `json:"stages,omitempty"` // what was fetched, in order
	// Outcome is empty while the boot is under way.
	Outcome Outcome `json:"outcome,omitempty"`
	// Error is why the network was left or the kernel got no further.
	Error string `json:"error,omitempty"`
}

// ResetRecord is one reset that was asked for, or one press of the button.
type ResetRecord struct {
	At   time.Time `json:"at"`
	Type string    `json:"type"` // a Redfish ResetType
	// Refused is why the BMC refused it, Ignored that it took it and did nothing.
	Refused string `json:"refused,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

// ring keeps the newest entries.
type ring[T any] struct{ entries []T }

func (r *ring[T]) add(e T) {
	if len(r.entries) >= history {
		copy(r.entries, r.entries[1:])
		r.entries[len(r.entries)-1] = e
		return
	}
	r.entries = append(r.entries, e)
}

func (r *ring[T]) all() []T { return append([]T(nil), r.entries...) }

// last returns the newest entry to be changed in place, or nil.
func (r *ring[T]) last() *T {
	if len(r.entries) == 0 {
		return nil
	}
	return &r.entries[len(r.entries)-1]
}

func newServer(b *BMC, index int) (*Server, error) {
	r := b.rack
	s := &Server{mainboard{bmc: b, index: index, name: model.ServerName(fmt.Sprintf("%s-system-%d", b.name, index))}}
	if from := s.HostAddress(); from.IsValid() {
		s.own = newOwnClient(from)
	}
	id := r.identity(string(s.name))
	s.uuid, s.serial = id.uuid(), id.serial()
	if r.kind.system == serialID { // so that the IDs sort as the servers do
		s.serial = fmt.Sprintf("%02d%s", index, s.serial[2:])
	}
	s.id = s.memberID(r.kind.system)
	if r.kind.uuid == uuidMAC {
		s.uuid = "00000000-0000-0000-0000-" + strings.ReplaceAll(s.MAC(0), ":", "")
	}
	if n := (b.number-1)*r.opts.SystemsPerBMC + index; n < len(r.opts.UUIDs) {
		s.uuid = r.opts.UUIDs[n]
	}
	s.model = r.kind.models[(b.number-1+index)%len(r.kind.models)]
	if err := s.equip(); err != nil {
		return nil, err
	}
	s.power, s.override, s.progress, s.indicator = model.PowerOff, noOverride, progressNone, "Off"
	return s, s.restore()
}

// restore takes over what was kept of an earlier rack. A machine that was on its
// way somewhere finds itself off: for it the restart was a power failure.
func (s *Server) restore() error {
	kept, err := s.rack().store.server(s.name)
	if err != nil {
		return err
	}
	s.disk, s.seed, s.said = kept.Disk, kept.Seed, kept.Said
	if s.contents = kept.Contents; s.contents == nil {
		s.contents = make(map[string]Content)
	}
	if kept.Override != (bootOverride{}) {
		s.override = kept.Override
	}
	s.override.Mode = s.modeOr(s.override.Mode)
	if kept.Running && s.disk != nil {
		s.power, s.system, s.progress = model.PowerOn, systemOS, progressOS
	}
	return nil
}

// keep keeps what must outlive the rack; the caller holds mu.
func (s *mainboard) keep() {
	if s.rack().store.dir == "" {
		return
	}
	kept := keptServer{Running: s.system == systemOS && s.power == model.PowerOn, Disk: s.disk, Override: s.override, Contents: s.contents, Seed: s.seed, Said: s.said}
	if err := s.rack().store.saveServer(s.name, kept); err != nil {
		s.rack().opts.Log.Warn("state of server is not kept", "server", string(s.name), "err", err)
	}
}

func (s *mainboard) rack() *Rack        { return s.bmc.rack }
func (s *mainboard) delays() Delays     { return s.bmc.rack.opts.Delays }
func (s *mainboard) identity() identity { return s.rack().identity(string(s.name)) }
func (s *mainboard) memoryBytes() int64 {
	return int64(s.build.Hardware.DIMMs) * s.build.Hardware.DIMMBytes
}
func (s *mainboard) diskSerial(i int) string { return s.identity().part(i + 1) }

// Name is the name that Ingot gives the server: <bmc>-system-<index>.
func (s *mainboard) Name() model.ServerName { return s.name }

// UUID is the system UUID that the machine itself sees, in lower case.
func (s *mainboard) UUID() string { return s.uuid }

// BMC is the BMC that the server is behind.
func (s *Server) BMC() *BMC { return s.bmc }

// URI is the path of the server's ComputerSystem.
func (s *mainboard) URI() string { return "/redfish/v1/Systems/" + s.place() }

// place is the ID of the ComputerSystem that the machine is now.
func (s *mainboard) place() string { return s.bmc.inPlaceOf(s.bmc.servers[s.index]).id }

// inPlaceOf is the machine that is where s was when the rack was made.
func (b *BMC) inPlaceOf(s *Server) *Server {
	if s == nil || !b.faults.has(FaultBladesSwapped) {
		return s
	}
	return b.servers[len(b.servers)-1-slices.Index(b.servers, s)]
}

// SerialNumber is the serial number of the server, not of a disk.
func (s *mainboard) SerialNumber() string { return s.serial }

// MAC is the MAC address of the i-th NIC, in lower case.
func (s *mainboard) MAC(i int) string { return s.rack().mac(s.bmc.number, s.index, i) }

// Target is what a client needs to speak of the server with its BMC.
func (s *Server) Target() model.SystemTarget {
	return model.SystemTarget{BMC: s.bmc.Target(), URI: s.URI()}
}

// SetNetworkFirst puts the network before the disk in the persistent boot order.
func (s *Server) SetNetworkFirst(first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.networkFirst, s.nextFirst = first, nil
	s.machine.Reordered()
}

// Power is the true power state, whatever the BMC says.
func (s *Server) Power() model.Power {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.power
}

// PowerOns counts how often the server was switched on.
func (s *Server) PowerOns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.powerOns
}

// Disk is what is installed, nil when nothing is.
func (s *Server) Disk() *Disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk == nil {
		return nil
	}
	d := *s.disk
	return &d
}

// Indicator is what the light that tells the machine from its neighbours shows: Lit,
// Blinking or Off.
func (s *Server) Indicator() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.indicator
}

// Override is the boot override as the firmware would find it: Enabled, Target
// and Mode.
func (s *Server) Override() (enabled, target, mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.override.Enabled, s.override.Target, s.override.Mode
}

// Boots are the newest boots, oldest first.
func (s *Server) Boots() []BootRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	boots := s.boots.all()
	for i := range boots {
		boots[i].Stages = append([]model.BootStage(nil), boots[i].Stages...)
	}
	return boots
}

// Resets are the newest resets that were asked for, oldest first.
func (s *Server) Resets() []ResetRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resets.all()
}

// Installs are the newest images that were written to the disk, oldest first.
func (s *Server) Installs() []Install {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installs.all()
}

// modeOr is mode if the machine has it, else the one that it has.
func (s *mainboard) modeOr(mode string) string {
	if slices.Contains(s.build.Modes, mode) {
		return mode
	}
	return s.build.Modes[0]
}

package model

import (
	"slices"
	"strings"
	"time"
)

// BMCTarget is all that is needed to speak with one BMC.
type BMCTarget struct {
	Name    BMCName
	Scheme  string // http or https
	Address string // host:port
	// Hostname is the name that a certificate is verified against, where a CA is
	// configured; "" = the host of Address.
	Hostname string
	Username string
	Password Sensitive
	// Fingerprint is the SHA-256 of the certificate that was pinned on first
	// contact, in hexadecimal; empty before it.
	Fingerprint string
	// TLSMinimum is the lowest version of TLS, "1.0" to "1.3"; "" = 1.2.
	TLSMinimum string
	// Accepted is what the record has about these credentials.
	Accepted Acceptance
	// Trial is set while the credentials are only being tried: a refusal is taken at
	// its word, for each further attempt brings the account nearer to being locked.
	Trial bool
	// Retry is set when a person asks for refused credentials to be tried once more.
	Retry bool
	// Default is set for credentials of the MAC prefix database, which many BMCs share
	// that have nothing else in common: a refusal says nothing of the other BMCs.
	Default bool
}

// Acceptance is what BMCs answered to credentials, as far as the records have it.
type Acceptance struct {
	Here      bool // they are those that this BMC accepted last
	Elsewhere bool // another BMC accepted them last
	Refused   Refusals
}

// Refusals are those in a row of the credentials that the BMC accepted before.
type Refusals struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"` // of the last of them
}

// A BMC that starts, or whose account is locked, refuses the credentials that it accepted before. It is asked again RefusedTries
// times at intervals of RefusedPause, which most BMCs allow without locking an account, then at intervals of RefusedPauseMax.
const (
	RefusedTries    = 10
	RefusedPause    = 100 * time.Second
	RefusedPauseMax = 15 * time.Minute
)

// AskAt is when the BMC is asked again; zero = at once.
func (r Refusals) AskAt() time.Time {
	switch {
	case r.Count == 0:
		return time.Time{}
	case r.Count <= RefusedTries:
		return r.At.Add(RefusedPause)
	}
	return r.At.Add(RefusedPauseMax)
}

// SystemTarget is one ComputerSystem behind a BMC, and the machine that has to be there
// for anything to be made of what is read, or to be done to it.
type SystemTarget struct {
	BMC  BMCTarget
	URI  string // /redfish/v1/Systems/1
	UUID string // canonical; "" = its BMC never showed one
	// Board tells it where there is no UUID.
	Board Board
}

// Board tells a machine whose BMC shows no UUID.
type Board struct {
	SerialNumber string `json:"serialNumber,omitempty"` // "" = it is not known
	Model        string `json:"model,omitempty"`
}

// Tells reports whether the board can be told from others of its model: some have what their
// vendor left in place of a serial number.
func (b Board) Tells() bool {
	serial := strings.ToLower(strings.TrimSpace(b.SerialNumber))
	return serialOf(serial) != "" && !slices.Contains(boardPlaceholders, serial)
}

// boardPlaceholders are what BMCs have for the serial number of a board beside placeholders.
var boardPlaceholders = []string{
	"default string", "system serial number", "serial number", "chassis serial number", "not applicable", "empty", "invalid", "oem",
	"0123456789", "123456789", "1234567890", "01234567890123456789ab", "xxxxxxxxxx",
}

// ResetResult is what became of a request for a power change.
type ResetResult struct {
	// Before is the power state that was read right before.
	Before Power
	// Did is what the BMC was asked for: another kind than was wanted where the machine
	// does not have that one. It is "" if nothing was asked for, as it was On already.
	Did ResetKind
}

// BMCFacts is what a BMC says of itself and of the systems behind it.
type BMCFacts struct {
	Name            BMCName      `json:"name"`
	UUID            string       `json:"uuid,omitempty"`
	Manufacturer    string       `json:"manufacturer,omitempty"`
	Model           string       `json:"model,omitempty"`
	SKU             string       `json:"sku,omitempty"`
	SerialNumber    string       `json:"serialNumber,omitempty"`
	FirmwareVersion string       `json:"firmwareVersion,omitempty"`
	MACAddress      string       `json:"macAddress,omitempty"`
	Power           Power        `json:"powerState,omitempty"`
	LastResetTime   time.Time    `json:"lastResetTime,omitzero"`
	Fingerprint     string       `json:"fingerprint,omitempty"` // certificate that was seen
	Systems         []SystemFact `json:"systems,omitempty"`     // sorted by URI
	// Others are the systems behind it that are no servers, each with why, for a person.
	Others []string `json:"others,omitempty"`
	// Problems are the parts that could not be read, for a person.
	Problems []string `json:"problems,omitempty"`
	// Starting is set if it lacks a system, a UUID or a reset action, as BMCs do until they or their hosts have started.
	Starting bool `json:"starting,omitempty"`
}

// SystemFact is one machine behind a BMC: a ComputerSystem that can be reset.
type SystemFact struct {
	URI   string `json:"uri"`
	UUID  string `json:"uuid,omitempty"` // canonical; empty when the BMC has none that can be used
	Board Board  `json:"board,omitzero"` // of a system without UUID
	Power Power  `json:"powerState,omitempty"`
	// Unread is set for a system that is listed and could not be read: it may be any.
	Unread bool `json:"unread,omitempty"`
}

// Unidentified is the reason why a system that was read has no identity of its own at its BMC; "" = it has.
// With UUIDMissing Git may give it a UUID, by its place.
func (f *BMCFacts) Unidentified(s SystemFact) Reason {
	shared := slices.ContainsFunc(f.Systems, func(other SystemFact) bool { return other.URI != s.URI && other.UUID == s.UUID })
	switch {
	case s.UUID != "" && shared:
		return ReasonDuplicateUUID
	case s.UUID != "":
		return ""
	case s.Board.Tells():
		return ReasonUUIDMissing
	}
	return ReasonNotIdentifiable
}

// MachineState is what one reading of a machine says.
type MachineState struct {
	Power Power
	POST  bool // its firmware still tests and sets up the machine, as far as the BMC says
}

// ServerFacts is what was read of one server through its BMC.
type ServerFacts struct {
	Name      ServerName `json:"name"`
	Power     Power      `json:"power,omitempty"`
	Inventory *Inventory `json:"inventory,omitempty"` // nil before the first full reading
}

// Inventory is what the BMC knows of a server's parts. A reading taken while the
// server is off may lack parts; it never erases what was known.
type Inventory struct {
	UUID              string             `json:"uuid,omitempty"` // canonical
	Manufacturer      string             `json:"manufacturer,omitempty"`
	Model             string             `json:"model,omitempty"`
	SKU               string             `json:"sku,omitempty"`
	SerialNumber      string             `json:"serialNumber,omitempty"`
	BIOSVersion       string             `json:"biosVersion,omitempty"`
	IndicatorLED      string             `json:"indicatorLED,omitempty"`
	IndicatorOnOff    bool               `json:"indicatorOnOff,omitempty"` // see Indicator
	MemoryBytes       int64              `json:"memoryBytes,omitempty"`
	Processors        []Processor        `json:"processors,omitempty"`
	Memory            []MemoryModule     `json:"-"` // for bmc check: it is not stored
	Storages          []Storage          `json:"storages,omitempty"`
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
	// MACAddresses are MAC addresses of its network cards beside those of
	// NetworkInterfaces, canonical: see Inventory.MACs.
	MACAddresses []string `json:"macAddresses,omitempty"`
	BootTargets  []string `json:"bootTargets,omitempty"` // allowed one-time boot targets
	// BootOrder is what the firmware boots from, the first first, by the references of the
	// boot options (DSP2046, ComputerSystem).
	BootOrder []string `json:"bootOrder,omitempty"`
	// SecureBoot is set if the firmware's next start is known to check signatures.
	SecureBoot bool `json:"secureBoot,omitempty"`
	// Summarized are the parts of which a summary alone was to be had: PartProcessors, PartDrives.
	Summarized []string `json:"summarized,omitempty"`
	// Problems are the parts that could not be read, for a person.
	Problems []string `json:"problems,omitempty"`
}

// The parts of an Inventory that may be taken from a summary of them.
const (
	PartProcessors = "processors"
	PartDrives     = "drives"
)

// Processor is one CPU, with upstream's status field names.
type Processor struct {
	ID             string `json:"id"`
	Type           string `json:"type,omitempty"`
	Architecture   string `json:"architecture,omitempty"`
	InstructionSet string `json:"instructionSet,omitempty"`
	Manufacturer   string `json:"manufacturer,omitempty"`
	Model          string `json:"model,omitempty"`
	MaxSpeedMHz    int32  `json:"maxSpeedMHz,omitempty"`
	TotalCores     int32  `json:"totalCores,omitempty"`
	TotalThreads   int32  `json:"totalThreads,omitempty"`
}

// MemoryModule is one memory device.
type MemoryModule struct {
	ID           string `json:"id"`
	Bytes        int64  `json:"bytes,omitempty"`
	Type         string `json:"type,omitempty"`
	SpeedMHz     int32  `json:"speedMHz,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	PartNumber   string `json:"partNumber,omitempty"`
}

// Storage is one storage subsystem.
type Storage struct {
	Name    string   `json:"name"`
	State   string   `json:"state,omitempty"`
	Volumes []Volume `json:"volumes,omitempty"`
	Drives  []Drive  `json:"drives,omitempty"`
}

// Volume is one volume of a storage subsystem.
type Volume struct {
	Name        string `json:"name"`
	Bytes       int64  `json:"bytes,omitempty"`
	State       string `json:"state,omitempty"`
	RAIDType    string `json:"raidType,omitempty"`
	VolumeUsage string `json:"volumeUsage,omitempty"`
}

// Drive is one physical drive.
type Drive struct {
	Name         string `json:"name"`
	MediaType    string `json:"mediaType,omitempty"`
	Type         string `json:"type,omitempty"`
	Bytes        int64  `json:"bytes,omitempty"`
	Vendor       string `json:"vendor,omitempty"`
	Model        string `json:"model,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	State        string `json:"state,omitempty"`
	// IDs are its world-wide names, Volumes those of the subsystem that it is part of.
	IDs     []string     `json:"ids,omitempty"`
	Volumes []DiskVolume `json:"volumes,omitempty"`
	// Bay is the path of its resource: that of the place where it is, as a rule.
	Bay string `json:"bay,omitempty"`
}

// NetworkInterface is one network interface, from Redfish or from the probe.
type NetworkInterface struct {
	Name          string     `json:"name"`
	IPs           []string   `json:"ips,omitempty"`
	MACAddress    string     `json:"macAddress,omitempty"` // canonical
	CarrierStatus string     `json:"carrierStatus,omitempty"`
	Neighbors     []Neighbor `json:"neighbors,omitempty"`
}

// Neighbor is an LLDP neighbour.
type Neighbor struct {
	MACAddress        string `json:"macAddress,omitempty"`
	PortID            string `json:"portID,omitempty"`
	PortDescription   string `json:"portDescription,omitempty"`
	SystemName        string `json:"systemName,omitempty"`
	SystemDescription string `json:"systemDescription,omitempty"`
}

// BootMethod is what a server boots from once: the target of a boot override
// (DSP2046, ComputerSystem, BootSource).
type BootMethod string

// The boot methods. All but BootDisk are boots from the network.
const (
	BootPXE      BootMethod = "Pxe"
	BootUEFIHTTP BootMethod = "UefiHttp"
	BootDisk     BootMethod = "Hdd"
)

// ProbeReport is what the probe on a server said, as the registry received it.
type ProbeReport struct {
	Ticket     string    `json:"ticket"` // ID of the boot ticket whose token was shown
	ReceivedAt time.Time `json:"receivedAt"`
	Data       ProbeData `json:"data"`
}

// BootState is a server's word that what it booted is up.
type BootState struct {
	Ticket     string    `json:"ticket"`
	ReceivedAt time.Time `json:"receivedAt"`
	// Client is the IP address that the report came from, "" if a proxy passed it on.
	Client string `json:"client,omitempty"`
	// CloudInit is how cloud-init ended on it, nil = it has not said.
	CloudInit *CloudInitResult `json:"cloudInit,omitempty"`
}

// CloudInitResult is how cloud-init ended.
type CloudInitResult struct {
	ReceivedAt time.Time `json:"receivedAt"`
	// Errors are the first of its errors: stage, module and what went wrong, in a line that
	// may be shown to everybody. None = it ended well. ErrorsMore is how many more there are.
	Errors     []string `json:"errors,omitempty"`
	ErrorsMore int      `json:"errorsMore,omitempty"`
}

// WipeReport is the outcome of a wipe, disk by disk.
type WipeReport struct {
	Ticket     string     `json:"ticket"`
	ReceivedAt time.Time  `json:"receivedAt"`
	Mode       string     `json:"mode"` // none, quick or secure
	Disks      []DiskWipe `json:"disks"`
}

// DiskWipe is the outcome of the wipe of one disk.
type DiskWipe struct {
	Name      string `json:"name"` // sda
	Serial    string `json:"serial,omitempty"`
	Model     string `json:"model,omitempty"`
	SizeBytes uint64 `json:"sizeBytes,omitempty"`
	WWID      string `json:"wwid,omitempty"`   // as Linux has it
	Method    string `json:"method,omitempty"` // blkdiscard, overwrite, nvme-format …
	Result    string `json:"result"`           // wiped, failed or skipped
	// Reason says in one word why a disk was skipped.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Disk returns the disk that was wiped, or was not.
func (w DiskWipe) Disk() Disk {
	d := Disk{Name: w.Name, Serial: w.Serial, Model: w.Model, Bytes: w.SizeBytes}
	if id := WorldWideName(w.WWID); id != "" {
		d.IDs = []string{id}
	}
	return d
}

// WipeProgress is how far a wipe is, disk by disk.
type WipeProgress struct {
	Ticket     string         `json:"ticket"`
	ReceivedAt time.Time      `json:"receivedAt"`
	Mode       string         `json:"mode"`
	Disks      []DiskProgress `json:"disks"`
}

// DiskProgress is how far the wipe of one disk is.
type DiskProgress struct {
	Name      string `json:"name"` // sda
	Serial    string `json:"serial,omitempty"`
	SizeBytes uint64 `json:"sizeBytes,omitempty"`
	// Method is what is done to the disk now: blkdiscard, overwrite, nvme-sanitize …
	Method string `json:"method,omitempty"`
	// Percent is how much of the disk's wipe is done, from 0 to 100; -1 when the disk
	// does not say.
	Percent int `json:"percent"`
	// Result is that of DiskWipe once the disk is done, "" before.
	Result string `json:"result,omitempty"`
}

// Tens is Percent rounded down to tens; nil = the disk does not say.
func (d DiskProgress) Tens() *int {
	if d.Percent < 0 {
		return nil
	}
	return new(min(d.Percent, 100) / 10 * 10)
}

// The results of a disk's wipe.
const (
	WipeDone    = "wiped"
	WipeFailed  = "failed"
	WipeSkipped = "skipped"
)

// Why a disk is not wiped and need not be.
const (
	SkipMode         = "ModeNone"     // the cleanup leaves disks as they are
	SkipNoMedium     = "NoMedium"     // nothing is in the drive
	SkipVirtualMedia = "VirtualMedia" // the BMC lends it
	SkipRemote       = "Remote"       // it is on a storage network
)

// Cleanup modes.
const (
	CleanupNone   = "none"
	CleanupQuick  = "quick"
	CleanupSecure = "secure"
)

// cleanupModes are those, the laxest first.
var cleanupModes = []string{CleanupNone, CleanupQuick, CleanupSecure}

// StricterCleanup is the stricter of two cleanup modes; "" is laxer than any.
func StricterCleanup(a, b string) string {
	if slices.Index(cleanupModes, b) > slices.Index(cleanupModes, a) {
		return b
	}
	return a
}

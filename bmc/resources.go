package bmc

import (
	"encoding/json"
	"strings"
)

// Resources that lead to others are read with our own types, for gofish keeps the
// links to itself; those without are read with gofish's.

// system is a ComputerSystem (DSP0268).
type system struct {
	ID                      string `json:"@odata.id"`
	ETag                    string `json:"@odata.etag"`
	UUID                    string
	SystemType              string
	Manufacturer            string
	Model                   string
	SKU                     string
	SerialNumber            string
	BiosVersion             string
	IndicatorLED            string
	LocationIndicatorActive *bool
	PowerState              string
	LastResetTime           string
	BootProgress            any
	MemorySummary           struct{ TotalSystemMemoryGiB float64 }
	ProcessorSummary        processorSummary
	Boot                    boot
	Actions                 struct {
		Reset *resetAction `json:"#ComputerSystem.Reset"`
	}
	Processors, Memory, Storage, SimpleStorage, EthernetInterfaces, NetworkInterfaces, SecureBoot link

	Settings struct{ SettingsObject link } `json:"@Redfish.Settings"`
	Links    struct{ ManagedBy, Chassis []link }
}

// processorSummary is ComputerSystem.ProcessorSummary: what there is of the central ones.
type processorSummary struct {
	Count, CoreCount, LogicalProcessorCount *int
	Model                                   string
}

func (s *system) shown() SystemState {
	return changeable{PowerState: s.PowerState, UUID: s.UUID, SerialNumber: s.SerialNumber, Model: s.Model, LastResetTime: s.LastResetTime, BootProgress: s.BootProgress}.shown()
}

func (s *system) locator() locator { return locator{s.IndicatorLED, s.LocationIndicatorActive} }

// boot is ComputerSystem.Boot. Pointers are nil for what the BMC does not have.
type boot struct {
	Enabled *string  `json:"BootSourceOverrideEnabled"`
	Target  *string  `json:"BootSourceOverrideTarget"`
	Mode    *string  `json:"BootSourceOverrideMode"`
	Targets []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
	Modes   []string `json:"BootSourceOverrideMode@Redfish.AllowableValues"`
	Order   []string `json:"BootOrder"`
	Options link     `json:"BootOptions"`
}

type resetAction struct {
	Target  string   `json:"target"`
	Allowed []string `json:"ResetType@Redfish.AllowableValues"`
	Info    string   `json:"@Redfish.ActionInfo"`
}

// collection is any resource collection, expanded or not.
type collection struct {
	Members []json.RawMessage // nil when there are none, not even an empty list
	Count   *int              `json:"Members@odata.count"` // on all pages
	Next    string            `json:"Members@odata.nextLink"`
	Type    string            `json:"@odata.type"`

	size int // in bytes
}

// saysNone reports whether a collection whose Members are null says that it is empty, by
// its type and its count.
func (c *collection) saysNone() bool {
	return c.Count != nil && *c.Count == 0 && strings.Contains(c.Type, "Collection")
}

// storage is a Storage resource: its drives and volumes, expanded or not.
type storage struct {
	ID      string `json:"@odata.id"`
	Short   string `json:"Id"`
	Name    string
	Status  status
	Drives  []json.RawMessage
	Volumes json.RawMessage
}

// simpleStorage is a SimpleStorage resource, what older BMCs have instead.
type simpleStorage struct {
	Short   string `json:"Id"`
	Name    string
	Status  status
	Devices []struct {
		Name, Manufacturer, Model string
		CapacityBytes             int64
		Status                    status
	}
}

type status struct{ State, Health string }

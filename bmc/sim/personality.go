package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// personality is a vendor's way, as data: see personalities.
type personality struct {
	manufacturer string
	models       []string // servers take turns
	sku          string
	bios         string
	macPrefix    string // of BMCs and NICs: three bytes, lower case

	root        rootForm
	bmcModel    string
	bmcFirmware string
	manager     string // ID of the manager
	// system and chassis are the formats of IDs: with the verb %d for a number, without it
	// the first has none, and serialID.
	system, chassis string
	fromZero        bool // IDs count from 0
	// board, if set, is the ID of a system beside the machine's that is a part of it: the
	// one with its accelerators, which cannot be reset.
	board string
	// lacks are the properties that other vendors have: of the service root, a
	// ComputerSystem, its links, a Chassis and a Manager. What only a link that is lacking
	// leads to is not there.
	lacks []string

	resetTypes    []string
	resetForm     resetForm
	managerResets []string // nil: it cannot be reset
	refusesRepeat bool     // On when on, and off when off, is an error

	boot bootForm

	uuid  uuidForm
	etags etagForm
	// needsIfMatch: PATCH of a system wants its ETag.
	needsIfMatch bool

	sessions int           // that are open at once
	idle     time.Duration // after which a session is closed

	storage string // path of Storage below a system, "Storage" when empty
	// emptyNICs: the collection of EthernetInterfaces has no members.
	emptyNICs bool
	hardware  *Hardware
}

// rootForm is what a service root says of the service.
type rootForm struct {
	version         string // RedfishVersion
	vendor, product string
	expand          expansion
	only, topSkip   bool // query parameters
}

// expansion is what $expand can do (DSP0266 §7.3.1). The zero value is a service that does
// not know it.
type expansion struct {
	levels int  // MaxLevels
	all    bool // "*" and "~" beside "."
}

// resetForm is where the allowed types of a reset are published.
type resetForm int

const (
	resetsInAction resetForm = iota // ResetType@Redfish.AllowableValues
	resetsInInfo                    // @Redfish.ActionInfo
	resetsInBoth
)

// uuidForm is how the UUID of a system is shown.
type uuidForm int

const (
	uuidLower   uuidForm = iota
	uuidUpper            // in capitals
	uuidSwapped          // with the bytes of the first three groups the other way round (DSP0134 §7.2.1)
	uuidMAC              // in capitals, and zeros but for the MAC address
)

// etagForm is how ETags are given.
type etagForm int

const (
	etagStrong etagForm = iota
	etagWeak
	etagHeader // strong, and not in the body
)

// bootForm is what ComputerSystem.Boot has.
type bootForm struct {
	targets []string // of an override; nil: there is none
	// shows are the properties beyond target, its allowed values and whether it is enabled.
	shows    []string
	noAlways bool // Continuous is not allowed
	rule     overrideRule
	// order is where a persistent boot order is taken.
	order orderForm
	// settings is the ID of the settings object below a system, "" = there is none.
	settings string
}

// orderForm is where a persistent boot order is taken.
type orderForm int

const (
	orderNone  orderForm = iota // nowhere
	orderNow                    // in the system
	orderLater                  // in the settings object alone, for the next start
)

// overrideRule is what a vendor's BMC makes of a boot override; "" keeps what is
// sent.
type overrideRule string

const (
	// overrideForgetsMode falls back to Legacy when BootSourceOverrideMode is not
	// sent along.
	overrideForgetsMode overrideRule = "forgets mode"
	// overrideKeepsTarget refuses Disabled together with target None.
	overrideKeepsTarget overrideRule = "keeps target"
	// overrideInSettings takes boot properties only in the settings object, and
	// there only with If-Match.
	overrideInSettings overrideRule = "in settings"
)

func (k *personality) has(property string) bool { return !slices.Contains(k.lacks, property) }

// trim takes out of a resource, and out of its links, what the vendor lacks.
func (k *personality) trim(o object) object {
	links, _ := o["Links"].(object)
	for _, name := range k.lacks {
		delete(o, name)
		delete(links, name)
	}
	return o
}

// storagePath is where Storage is, below a system.
func (k *personality) storagePath() string { return orDefault(k.storage, "Storage") }

// Personalities are the names that Options.Personality may have, sorted.
func Personalities() []string { return slices.Sorted(maps.Keys(personalities)) }

// Traits are what a client may expect of the servers of a personality.
type Traits struct {
	UUID, Serial       bool // by which they are told apart
	Override           bool // they have a boot override
	OrdersNow          bool // they have a boot order that is taken at once
	OrdersLater        bool // they have one that is taken for the next start
	ResetsInInfo       bool // reset types are in an ActionInfo alone
	Indicator          bool
	MACs               bool // those of the network cards are shown somewhere
	EthernetInterfaces bool // with members
	Storage            bool
	ETags              bool // in the bodies of resources
}

// TraitsOf returns the traits of one of Personalities.
func TraitsOf(name string) Traits {
	k := personalities[name]
	t := Traits{
		UUID: k.has("UUID"), Serial: k.has("SerialNumber"), Override: k.boot.targets != nil,
		OrdersNow: k.boot.order == orderNow, OrdersLater: k.boot.order == orderLater, ResetsInInfo: k.resetForm == resetsInInfo,
		Indicator:          k.has("IndicatorLED") || k.has("LocationIndicatorActive"),
		EthernetInterfaces: k.has("EthernetInterfaces") && !k.emptyNICs, Storage: k.has("Storage"), ETags: k.etags != etagHeader,
	}
	t.MACs = t.EthernetInterfaces || k.has("NetworkInterfaces") || k.has("NetworkAdapters")
	return t
}

// serialID is the format of IDs that are serial numbers.
const serialID = "serial"

// memberID returns the ID of the i-th of n members, i from 0, counted from first, such that
// IDs sort as their members do.
func memberID(format string, i, n, first int) string {
	number := fmt.Sprintf("%0*d", len(strconv.Itoa(n-1+first)), i+first)
	switch before, after, verb := strings.Cut(format, "%d"); {
	case verb:
		return before + number + after
	case i == 0:
		return format
	default:
		return format + number
	}
}

// memberID is that of the server, in a format of its personality.
func (s *mainboard) memberID(format string) string {
	first := 1
	if s.rack().kind.fromZero {
		first = 0
	}
	if format == serialID {
		return s.serial
	}
	return memberID(format, s.index, s.rack().opts.SystemsPerBMC, first)
}

package netboot

import (
	"net/netip"

	"ingot/model"
)

// Kind is what kind of client asks for a boot file.
type Kind string

// The kinds of clients.
const (
	KindNone  Kind = ""      // it asks for none
	KindPXE   Kind = "pxe"   // firmware that boots by TFTP (option 60 PXEClient)
	KindHTTP  Kind = "http"  // UEFI HTTP boot (option 60 HTTPClient)
	KindIPXE  Kind = "ipxe"  // iPXE, ours or the network card's (option 77)
	KindProbe Kind = "probe" // metalprobe as a machine's init, that looks for its Ignition (option 77 "ingot-probe")
)

// ProbeUserClass is the user class (RFC 3004, RFC 8415 §21.15) of metalprobe as
// a machine's init.
const ProbeUserClass = "ingot-probe"

// Client is what a DHCP packet says of the machine that asks to boot.
type Client struct {
	Kind Kind
	Arch Arch
	// UUIDs are what option 97 or a DUID-UUID may mean, canonical: as it stands and
	// with its first three fields byte-swapped, for firmware sends either.
	UUIDs []string
	MAC   string // canonical
	V6    bool
}

// Site is where a client on one network reaches Ingot's boot service.
type Site struct {
	HTTP string     // base URL without slash at its end
	TFTP netip.Addr // invalid = TFTP is off
}

// Answer is the boot file that a client is told.
type Answer struct {
	// File is a name on the TFTP server, or a whole URL when HTTP is set.
	File string
	HTTP bool
	// Loader is set when File is a boot loader, which asks DHCP again by itself: a
	// LoopLimiter is to be asked whether it may be told once more.
	Loader bool
	// VendorClass is what option 60 (v6: 16) of the answer must say for the firmware
	// to take it, "" for none.
	VendorClass string
	Ticket      *model.Ticket
	Arch        Arch // of the client that is told, for callers
	Kind        Kind // likewise, also of one that is told none
	// MAC is that of the client that is told, for callers; "" for what runs once the
	// machine has booted.
	MAC string
	// Reason is why there is no boot file, "" when there is one.
	Reason Reason
}

// Reason is why a client is told no boot file: few words, fit for a metric.
type Reason string

// The reasons for telling a client no boot file.
const (
	ReasonNotAsked    Reason = "not asked"            // the client is no netboot client
	ReasonNoTicket    Reason = "no ticket"            // the server has no ticket that lets it boot now
	ReasonUnknownArch Reason = "unknown architecture" // no boot loader is known for it
	ReasonNoLoader    Reason = "no loader"            // the folders hold none for the architecture
	ReasonNoTFTP      Reason = "TFTP is off"          // the firmware fetches by TFTP alone, and tftp.listen is empty
	ReasonTooLong     Reason = "name too long"        // the name of the boot file, for the field of the packet that it goes into
	ReasonLoop        Reason = "boot loop"            // the machine asked again and again in a short time: for callers, whose LoopLimiter refused
)

// Tickets is where boot tickets are found.
type Tickets interface {
	// Find returns the boot ticket of the server with this UUID or MAC address, and
	// how far it has come.
	Find(id string) (model.TicketHolder, bool)
}

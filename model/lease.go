package model

import (
	"net/netip"
	"time"
)

// NetworkRole is what is plugged into a network that DHCP serves.
type NetworkRole string

// The roles of a network.
const (
	RoleBMC  NetworkRole = "bmc"  // BMCs: a lease makes an Endpoint
	RoleHost NetworkRole = "host" // servers: a lease may come with a boot file
)

// NetworkRoles are all roles.
var NetworkRoles = []NetworkRole{RoleBMC, RoleHost}

// Lease is an address, or a delegated prefix, that DHCP gave to one network
// interface. DHCP alone writes it.
type Lease struct {
	Network string      `json:"network"`
	Role    NetworkRole `json:"role"`
	// MAC is canonical; empty when Declined, and when nothing shows it: then ClientID and IAID
	// tell whose lease it is.
	MAC string `json:"mac"`
	// Nth is not 0 for what an interface has besides, of the kind and on the link: a DHCPv6
	// client may ask for several leases at once.
	Nth     int        `json:"nth,omitempty"`
	Address netip.Addr `json:"address"`
	// Bits is the length of the prefix at Address that was delegated (RFC 8415
	// §6.3); 0 = the address alone was given.
	Bits int `json:"bits,omitempty"`
	// ClientID is the client identifier or DUID that was last shown, in hexadecimal.
	// A lease belongs to the MAC address, if there is one, whatever it is: firmware, iPXE
	// and operating system of one machine each show another.
	ClientID string `json:"clientID,omitempty"`
	IAID     uint32 `json:"iaid,omitempty"` // RFC 8415 §21.4, §21.21

	Since   time.Time `json:"since"`   // when this interface first got this address
	Renewed time.Time `json:"renewed"` // when it was last asked for
	// Expires is when the lease ends. An ended lease is remembered until its address
	// is needed, so that an interface that comes back finds its address. Zero = the
	// lease was given back and is to be forgotten.
	Expires time.Time `json:"expires,omitzero"`
	// Declined is set when somebody else was found to use the address (RFC 2131
	// §4.3.3): nobody is given it before Expires.
	Declined bool `json:"declined,omitempty"`
	// Unproven is set when the client alone said that MAC is its own, or nothing shows it: by
	// DHCPv6, unless the client's frames or its relay (RFC 6939) show it.
	Unproven bool `json:"unproven,omitempty"`
	// Relay is the relay that the client was last heard through, zero if it was none.
	Relay LeaseRelay `json:"relay,omitzero"`
	// Arrived is set when the client requested the address without having one. It may have come from another network.
	// It is not stored with the lease.
	Arrived bool `json:"-"`
	// Reserved is the Endpoint without a MAC address that reserves Address for the client's port or
	// client identifier, "" if none does. It is not stored with the lease.
	Reserved string `json:"-"`
}

// LeaseRelay is what a relay said of itself, and of where it heard a client. Nobody vouches for
// it: it is for people.
type LeaseRelay struct {
	Address netip.Addr `json:"address"` // giaddr, or the link address of DHCPv6
	// CircuitID and RemoteID are those of RelayPort, clipped: as text, or in hexadecimal where
	// they are none.
	CircuitID string `json:"circuitID,omitempty"`
	RemoteID  string `json:"remoteID,omitempty"`
}

// EndpointFacts is what leases say of one device on a bmc network. DHCP alone
// writes it; a renewal of the same address changes nothing in it.
type EndpointFacts struct {
	MACAddress string    `json:"macAddress"` // canonical
	IP         string    `json:"ip"`         // IPv4 rather than IPv6; empty once another device has it
	Network    string    `json:"network"`
	Since      time.Time `json:"since"` // when it got IP
	// Reserved is the Endpoint without a MAC address by which IP was last given, "" if none was.
	Reserved string `json:"reserved,omitempty"`
}

// PoolFacts is how full the pool of one subnet is, for people: DHCP alone says it.
type PoolFacts struct {
	Network string `json:"network"`
	Subnet  string `json:"subnet"` // CIDR
	Size    uint64 `json:"size"`   // addresses in the range
	Used    uint64 `json:"used"`   // of them leased, declined or reserved
	// Exhausted is when a device was first refused for want of an address; zero when
	// the last that asked got one.
	Exhausted time.Time `json:"exhausted,omitzero"`
	Refused   uint64    `json:"refused,omitempty"` // devices that got none since Exhausted
}

// EndpointRecord is what Ingot decided about one device that DHCP found, or that
// Git names as an Endpoint: its name, and the BMC that it was recognised as.
// reconcile alone writes it; the status branch mirrors it.
type EndpointRecord struct {
	Name       string    `json:"name"`
	MACAddress string    `json:"macAddress"` // canonical
	IP         string    `json:"ip"`
	Network    string    `json:"network,omitempty"` // empty for one that only Git names
	Since      time.Time `json:"since"`             // when it was first seen at IP
	// Prefix is the entry of the MAC prefix database that recognised it, Credential
	// identifies the one of the database's credentials that its BMC took, and Tried
	// are those that it refused, newest last; see Credential.ID.
	Prefix     string   `json:"prefix,omitempty"`
	Credential string   `json:"credential,omitempty"`
	Tried      []string `json:"tried,omitempty"`
	// RefusedAt is when its BMC refused the newest of Tried, at most as many as may
	// be refused in a row before a pause.
	RefusedAt []time.Time `json:"refusedAt,omitempty"`
}

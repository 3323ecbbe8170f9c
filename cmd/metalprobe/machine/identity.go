package machine

import (
	"encoding/binary"
	"net"

	"github.com/google/uuid"
)

// identity is what this machine tells a DHCP server of itself.
type identity struct {
	uuid    uuid.UUID // as SMBIOS has it; zero when unknown
	bootMAC net.HardwareAddr
	// hasURL is set when the kernel's command line says where the Ignition is, so
	// that no boot file is needed.
	hasURL bool
}

// userClass tells Ingot that a probe asks for its Ignition, and not firmware for a boot
// loader (RFC 3004, RFC 8415 §21.15).
const userClass = "ingot-probe"

// parseUUID reads product_uuid; some boards have nothing useful there.
func parseUUID(text string) uuid.UUID {
	id, err := uuid.Parse(text)
	if err != nil || id == uuid.Max {
		return uuid.Nil
	}
	return id
}

// machineID is the UUID as DHCPv4's option 97 has it: type 0, and the first three
// fields in little-endian order, as firmware sends it (RFC 4578 §2.3).
func (id *identity) machineID() []byte {
	if id.uuid == uuid.Nil {
		return nil
	}
	wire := append([]byte{0}, id.uuid[:]...)
	binary.LittleEndian.PutUint32(wire[1:], binary.BigEndian.Uint32(id.uuid[0:]))
	binary.LittleEndian.PutUint16(wire[5:], binary.BigEndian.Uint16(id.uuid[4:]))
	binary.LittleEndian.PutUint16(wire[7:], binary.BigEndian.Uint16(id.uuid[6:]))
	return wire
}

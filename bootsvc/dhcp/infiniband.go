package dhcp

import (
	"crypto/sha256"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"ingot/model"
)

// minClientID is the shortest client identifier (RFC 2132 §9.14).
const minClientID = 2

// clientMAC4 returns what a client is known by, "" if it is known by nothing: the Ethernet
// address in its packet, or one that is made of its client identifier.
func clientMAC4(p *dhcpv4.DHCPv4) (mac string, named bool) {
	if p.HWType != iana.HWTypeInfiniband {
		return clientMAC(p.ClientHWAddr), false
	}
	id := p.Options.Get(dhcpv4.OptionClientIdentifier)
	if len(id) < minClientID || len(id) > maxClientID {
		return "", false
	}
	return infiniBandMAC(id), true
}

// infiniBandMAC returns the MAC address that stands for an InfiniBand port. Its own address
// has 20 bytes, of which some change, and there is no room for it in a packet: such clients show a
// client identifier (RFC 4390 §2.1), which ends in the port's GUID. Of a GUID that was made
// of a MAC address that is the one, as it is printed on the card; of all others there is a locally
// administered one.
func infiniBandMAC(id []byte) string {
	if len(id) > guidLength {
		guid := id[len(id)-guidLength:]
		middle := [2]byte{guid[3], guid[4]}
		if middle == [2]byte{0xff, 0xfe} || middle == [2]byte{0x03, 0x00} {
			if mac := clientMAC([]byte{guid[0], guid[1], guid[2], guid[5], guid[6], guid[7]}); mac != "" {
				return mac
			}
		}
	}
	sum := sha256.Sum256(id)
	mac := model.MAC(sum[:6])
	mac[0] = mac[0]&^1 | 2 // an individual address, locally administered
	return mac.String()
}

// guidLength is how many bytes the GUID of a port has.
const guidLength = 8

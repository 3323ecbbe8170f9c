package model

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxDHCPIdentifier is how many bytes an identifier of a DHCP client, or of a relay's port, may
// have in a manifest: as many as the longest DUID without its type (RFC 8415 §11.1).
const MaxDHCPIdentifier = 128

// minClientID is how long a client identifier is at least (RFC 2132 §9.14).
const minClientID = 2

// RelayPort is where a relay hears a client: the sub-options of option 82 (RFC 3046 §3.1, §3.2), or over
// DHCPv6 the interface ID (RFC 8415 §21.18) and what stands behind the enterprise number of the remote ID
// (RFC 4649 §3), as their bytes. One that is empty stands for any.
type RelayPort struct{ CircuitID, RemoteID string }

// dhcpClientAnnotations say to whom DHCP gives the address of an Endpoint; the least bytes of each.
var dhcpClientAnnotations = map[string]int{AnnotationClientID: minClientID, AnnotationCircuitID: 1, AnnotationRemoteID: 1}

// pairsPattern is bytes in hexadecimal with colons between them, two at least.
var pairsPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})+$`)

const (
	wantIdentifier = "bytes in hexadecimal, as 0x01a0b1 or 01:a0:b1, or text, which may stand after text:"
	hexPrefix      = "hex:"
	hexNumber      = "0x"
	textPrefix     = "text:"
)

// decodeIdentifier reads an identifier of at least so many bytes.
func decodeIdentifier(text string, least int) (id []byte, err error) {
	digits, isHex := strings.CutPrefix(text, hexPrefix)
	if !isHex {
		digits, isHex = strings.CutPrefix(text, hexNumber)
	}
	switch {
	case pairsPattern.MatchString(text):
		id, err = hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	case isHex:
		if id, err = hex.DecodeString(digits); err != nil {
			err = errors.New("it is not pairs of hexadecimal digits")
		}
	default:
		id, err = encodeText(strings.TrimPrefix(text, textPrefix))
	}
	switch {
	case err != nil:
	case len(id) < least:
		err = fmt.Errorf("it is shorter than %d bytes", least)
	case len(id) > MaxDHCPIdentifier:
		err = fmt.Errorf("it is longer than %d bytes", MaxDHCPIdentifier)
	}
	if err != nil {
		return nil, fmt.Errorf("found %s, want %s: %w", show(text), wantIdentifier, err)
	}
	return id, nil
}

// FormatIdentifier writes bytes as an identifier in a manifest: as text if they are some and are
// read as the same again, else in hexadecimal.
func FormatIdentifier(id []byte) string {
	if read, err := decodeIdentifier(string(id), 1); err == nil && string(read) == string(id) {
		return string(id)
	}
	return hexNumber + hex.EncodeToString(id)
}

// maxReadable bounds what is shown of an identifier, in bytes.
const maxReadable = 64

// ReadableIdentifier returns the bytes that a relay calls a port, or itself, as people know it: as
// text if they are some, else in hexadecimal; clipped.
func ReadableIdentifier(id string) string {
	id = id[:min(maxReadable, len(id))]
	if strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }) {
		return hex.EncodeToString([]byte(id))
	}
	return id
}

// identifier returns an annotation's bytes, nil if it is not there or wrong, which Decode has said.
func (o *Endpoint) identifier(name string) []byte {
	if o.Annotations[name] == "" {
		return nil
	}
	id, _ := decodeIdentifier(o.Annotations[name], dhcpClientAnnotations[name])
	return id
}

// ClientID is the client identifier, or DUID, of the device that the Endpoint is for, in
// hexadecimal; "" if it is told by its MAC address alone, or by its relay port.
func (o *Endpoint) ClientID() string {
	if o.RelayPort() != (RelayPort{}) {
		return ""
	}
	return hex.EncodeToString(o.identifier(AnnotationClientID))
}

// RelayPort is the port that the Endpoint is for, whatever device is plugged into it; zero if it
// is for a device.
func (o *Endpoint) RelayPort() RelayPort {
	return RelayPort{string(o.identifier(AnnotationCircuitID)), string(o.identifier(AnnotationRemoteID))}
}

// Awaits names the device that the Endpoint is for, for people.
func (o *Endpoint) Awaits() string {
	switch {
	case o.RelayPort() != (RelayPort{}):
		return "a device on " + o.RelayPort().name()
	case o.ClientID() != "":
		return "the device with client identifier " + o.Annotations[AnnotationClientID]
	}
	return "device " + o.Spec.MACAddress
}

func (p RelayPort) name() string {
	var parts []string
	if p.CircuitID != "" {
		parts = append(parts, "circuit "+FormatIdentifier([]byte(p.CircuitID)))
	}
	if p.RemoteID != "" {
		parts = append(parts, "remote "+FormatIdentifier([]byte(p.RemoteID)))
	}
	return strings.Join(parts, ", ")
}

// isToldBeside reports whether annotations say to whom DHCP gives the address of an Endpoint, so
// that its MAC address need not be known.
func isToldBeside(annotations map[string]string) bool {
	for name := range dhcpClientAnnotations {
		if annotations[name] != "" {
			return true
		}
	}
	return false
}

// checkDHCPClient checks who is told by an annotation of an Endpoint, and notes where it stands.
func checkDHCPClient(d *fieldChecker, all map[string]string, key, value string) {
	if value == "" {
		return
	}
	if _, err := decodeIdentifier(value, dhcpClientAnnotations[key]); err != nil {
		d.bad(key, err.Error())
		return
	}
	if key == AnnotationClientID && (all[AnnotationCircuitID] != "" || all[AnnotationRemoteID] != "") {
		d.odd(key, "has no effect beside a relay port, which alone says who gets the address: take one of the two out")
	}
	d.place(key)
}

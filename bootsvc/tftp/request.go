package tftp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// The packets of TFTP (RFC 1350 §5, RFC 2347).
const (
	opRead        = 1
	opWrite       = 2
	opData        = 3
	opAcknowledge = 4
	opError       = 5
	opOptions     = 6
)

// The codes of errors (RFC 1350 §5).
const (
	codeIllegal  = 4
	codeReadOnly = 2 // access violation
)

const (
	// maxRequest bounds a request in bytes: RFC 2347 §2 says 512.
	maxRequest = 512
	maxOptions = 8

	defaultBlock = 512 // RFC 1350 §2
	minBlock     = 8   // RFC 2348
	maxBlock     = 65464
)

// Blocks that fit into one Ethernet frame: 1500 bytes without the headers of IP,
// UDP and TFTP. Over IPv6 it is what UEFI asks for, with some room for a tunnel.
const (
	blockV4 = 1468
	blockV6 = 1428
)

// readRequest is a read request (RFC 1350 §5).
type readRequest struct {
	name  string // as it was asked for
	mode  string // octet or netascii
	block int    // the size that is asked for, 0 = none
	size  bool   // the file's size is asked for (RFC 2349)
}

// parseRead returns the read request in p, the opcode included. It knows no
// options but those that are served; RFC 2347 lets all others be passed over.
func parseRead(p []byte) (readRequest, bool) {
	if len(p) < 4 || len(p) > maxRequest || binary.BigEndian.Uint16(p) != opRead || p[len(p)-1] != 0 {
		return readRequest{}, false
	}
	fields := strings.Split(string(p[2:len(p)-1]), "\x00")
	if len(fields) < 2 || len(fields) > 2+2*maxOptions || fields[0] == "" {
		return readRequest{}, false
	}
	r := readRequest{name: fields[0], mode: strings.ToLower(fields[1])}
	if r.mode != "octet" && r.mode != "netascii" {
		return readRequest{}, false
	}
	for i := 2; i+1 < len(fields); i += 2 {
		switch strings.ToLower(fields[i]) {
		case "blksize":
			if n, err := strconv.ParseUint(fields[i+1], 10, 32); err == nil && n >= minBlock {
				r.block = int(min(n, maxBlock))
			}
		case "tsize":
			r.size = true
		}
	}
	return r, true
}

// blockFor returns the block size that is granted, 0 for none: a client that can
// take less than the default is granted nothing, as RFC 2347 §3 has it.
func (r readRequest) blockFor(client netip.Addr) int {
	most := blockV4
	if client.Is6() && !client.Is4In6() {
		most = blockV6
	}
	if r.block < defaultBlock {
		return 0
	}
	return min(r.block, most)
}

// pack writes the request as the library is to see it: for the file called name,
// and with the options that are granted.
func (r readRequest) pack(p []byte, name string, block int) int {
	out := binary.BigEndian.AppendUint16(p[:0], opRead)
	add := func(fields ...string) {
		for _, f := range fields {
			out = append(append(out, f...), 0)
		}
	}
	add(name, r.mode)
	if block > 0 {
		add("blksize", strconv.Itoa(block))
	}
	// in netascii the size of what is sent is another
	if r.size && r.mode == "octet" {
		add("tsize", "0")
	}
	return len(out)
}

// optionsPacket returns the answer to the options of a request, nil when there are
// none: that of the library, but with the block size that is granted, 0 = none.
func optionsPacket(library []byte, granted int) []byte {
	out := []byte{0, opOptions}
	fields := strings.Split(string(library[2:]), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		switch name, value := fields[i], fields[i+1]; {
		case name != "blksize":
			out = append(append(append(append(out, name...), 0), value...), 0)
		case granted > 0:
			out = append(strconv.AppendInt(append(append(out, name...), 0), int64(granted), 10), 0)
		}
	}
	if len(out) == 2 {
		return nil
	}
	return out
}

// cleanName returns the name of the file that firmware means: some of it begins
// names with slashes of either kind, and some reads on behind the end of its DHCP
// option and takes the mark of the options' end, 0xff, for part of the name.
func cleanName(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	for len(name) > 0 && name[len(name)-1] == 0xff {
		name = name[:len(name)-1]
	}
	return strings.TrimLeft(name, "/")
}

// errorPacket returns an error for a client (RFC 1350 §5).
func errorPacket(code uint16, text string) []byte {
	var b bytes.Buffer
	b.Write([]byte{0, opError, byte(code >> 8), byte(code)})
	b.WriteString(text)
	b.WriteByte(0)
	return b.Bytes()
}

package tftp

import (
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
	codeOther    = 0 // the text says which
	codeNotFound = 1
	codeReadOnly = 2 // access violation
	codeIllegal  = 4 // illegal TFTP operation
)

const (
	// maxRequest bounds a request in bytes: RFC 2347 §2 says 512.
	maxRequest = 512
	maxOptions = 8

	headerSize   = 4   // of a block
	defaultBlock = 512 // RFC 1350 §2
	minBlock     = 8   // RFC 2348
	maxBlock     = 65464

	// maxWindow is the largest window that is granted, in blocks: more save no time that
	// is worth it, and the buffers of switches and of firmware are small.
	maxWindow = 8
)

// Blocks that fit into one Ethernet frame: 1500 bytes without the headers of IP,
// UDP and TFTP. Over IPv6 it is what UEFI asks for, with some room for a tunnel.
const (
	blockV4 = 1468
	blockV6 = 1428
)

// The modes of a transfer (RFC 1350 §1).
const (
	modeOctet    = "octet"
	modeNetASCII = "netascii"
)

// wrongFormat is what the client is told whose request is no read request.
const wrongFormat = "malformed"

// readRequest is a read request (RFC 1350 §5).
type readRequest struct {
	name   string // as it was asked for
	mode   string
	block  int  // the size that is asked for, 0 = none
	window int  // blocks that are asked for at a time, 0 = no number
	size   bool // the file's size is asked for (RFC 2349)
}

// parseRead returns the read request in p, the opcode included, and what is wrong with it,
// "" if nothing is. It knows no options but those that are served; RFC 2347 lets all others be
// passed over.
func parseRead(p []byte) (r readRequest, wrong string) {
	switch {
	case len(p) > maxRequest:
		return readRequest{}, "too long"
	case len(p) < 4 || binary.BigEndian.Uint16(p) != opRead || p[len(p)-1] != 0:
		return readRequest{}, wrongFormat
	}
	fields := strings.Split(string(p[2:len(p)-1]), "\x00")
	if len(fields) < 2 || len(fields) > 2+2*maxOptions || fields[0] == "" {
		return readRequest{}, wrongFormat
	}
	r = readRequest{name: fields[0], mode: strings.ToLower(fields[1])}
	if r.mode != modeOctet && r.mode != modeNetASCII {
		return readRequest{}, "use octet"
	}
	for i := 2; i+1 < len(fields); i += 2 {
		r.option(strings.ToLower(fields[i]), fields[i+1])
	}
	return r, ""
}

func (r *readRequest) option(name, value string) {
	n, err := strconv.ParseUint(value, 10, 32)
	switch {
	case name == "tsize":
		r.size = true
	case err != nil:
	case name == "blksize" && n >= minBlock:
		r.block = int(min(n, maxBlock))
	case name == "windowsize":
		r.window = int(min(n, maxWindow))
	}
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

// optionsPacket returns the answer to the options of a request for a file of so many
// bytes (RFC 2347), nil when none is granted.
func (r readRequest) optionsPacket(client netip.Addr, size int64) []byte {
	p := append(make([]byte, 0, 64), 0, opOptions)
	add := func(name string, value int64) {
		p = append(append(p, name...), 0)
		p = append(strconv.AppendInt(p, value, 10), 0)
	}
	if block := r.blockFor(client); block > 0 {
		add("blksize", int64(block))
	}
	if r.size && r.mode == modeOctet { // in netascii the size of what is sent is another
		add("tsize", size)
	}
	if r.window > 0 {
		add("windowsize", int64(r.window))
	}
	if len(p) == 2 {
		return nil
	}
	return p
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

// appendData appends a block of a file to p (RFC 1350 §5). Numbers of blocks begin
// again at 0 after 65535, which no standard says but all clients know.
func appendData(p []byte, number int64, data []byte) []byte {
	p = binary.BigEndian.AppendUint16(append(p, 0, opData), uint16(number))
	return append(p, data...)
}

// errorPacket returns an error for a client (RFC 1350 §5).
func errorPacket(code byte, text string) []byte {
	return append(append([]byte{0, opError, 0, code}, text...), 0)
}

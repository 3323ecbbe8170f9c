package dhcpimport

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dnsmasq reads its configuration, a file of dhcp-hostsfile, or its leases.
func (r *reader) dnsmasq(data []byte) error {
	number := 0
	var duid []byte
	for line := range bytes.Lines(data) {
		number++
		s := strings.TrimSpace(string(line))
		var err error
		switch words := strings.Fields(s); {
		case len(words) == 0, strings.HasPrefix(s, "#"):
		case words[0] == "duid":
			duid = []byte(s)
		case len(words) >= 5 && isNumber(words[0]) && !bytes.HasSuffix(line, []byte("\n")):
			err = r.skipUnfinished(number, s)
		case len(words) >= 5 && isNumber(words[0]):
			err = r.dnsmasqLease(words, number, duid != nil)
		default:
			err = r.dnsmasqLine(s, number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 63)
	return err == nil
}

// dnsmasqLease reads a line of the lease file: when it ends, the MAC address, or the IAID of
// DHCPv6, the address, the host name, the client identifier or DUID.
func (r *reader) dnsmasqLease(words []string, line int, v6 bool) error {
	l := leased{entry: entry{where: r.at(line), mac: parseMAC(words[1])}}
	address, ok := parseAddress(words[2])
	if !ok {
		return r.skip(l.where, "lease of "+words[2], "it is not a device address")
	}
	l.address = address
	if words[3] != "*" {
		l.hostname = words[3]
	}
	if words[4] != "*" {
		l.clientID, _ = keaIdentifier(words[4])
	}
	if v6 && address.Is6() {
		l.mac = ""
	}
	if end, _ := strconv.ParseInt(words[0], 10, 64); end != 0 { // else it never ends
		r.until(&l, time.Unix(end, 0))
	}
	return r.note(l)
}

// dnsmasqFiles are the options that name more files, and those that take reservations from elsewhere.
var dnsmasqFiles = map[string]string{
	"conf-file": "", "conf-dir": "", "dhcp-hostsfile": "", "dhcp-hostsdir": "", "dhcp-optsfile": "options by tag are not read",
	"servers-file": "-", "read-ethers": "/etc/ethers is not read: write Endpoints", "dhcp-script": "-",
	"dhcp-option": "", "dhcp-option-force": "", "dhcp-range": "-",
}

// dnsmasqLine reads a line of a configuration.
func (r *reader) dnsmasqLine(s string, number int) error {
	s = dnsmasqComment.ReplaceAllString(s, "")
	name, value, given := strings.Cut(strings.TrimPrefix(s, "--"), "=")
	name, value = strings.TrimSpace(name), strings.Trim(strings.TrimSpace(value), `"`)
	switch why, named := dnsmasqFiles[name]; {
	case name == "dhcp-host" && given:
		return r.dnsmasqHost(value, number)
	case !dnsmasqOption.MatchString(name) && strings.Contains(s, ","): // of a dhcp-hostsfile
		return r.dnsmasqHost(s, number)
	case !dnsmasqOption.MatchString(name):
		return r.skip(r.at(number), s, "it is neither an option nor a reservation of an address")
	case named && strings.HasPrefix(name, "dhcp-option"):
		if !strings.Contains(value, "tag:") {
			return nil // of all clients: it is the network's
		}
		return r.skip(r.at(number), s, "options by tag are not read: write annotations dhcp.ingot/…")
	case named && why == "":
		return r.skip(r.at(number), s, "the files that it names are not read: name them as well")
	case named && why != "-":
		return r.skip(r.at(number), s, why)
	}
	return nil
}

var (
	dnsmasqComment = regexp.MustCompile(`\s+#.*$`)
	// dnsmasqOption is the name of an option.
	dnsmasqOption = regexp.MustCompile(`^[a-z0-9-]+$`)
	dnsmasqTime   = regexp.MustCompile(`^(?:[0-9]+[smhdw]?|infinite|deprecated)$`)
)

// dnsmasqHost reads what dhcp-host says: hardware addresses, id:, set:, tag:, addresses, a name, a
// time and ignore, in any order.
func (r *reader) dnsmasqHost(value string, line int) error {
	e := entry{where: r.at(line)}
	what := "dhcp-host=" + value
	var addresses []netip.Addr
	var macs []string
	for i, part := range strings.Split(value, ",") {
		part = strings.TrimSpace(part)
		address, isAddress := parseAddress(strings.Trim(part, "[]"))
		mac := parseMAC(part)
		switch {
		case part == "", strings.HasPrefix(part, "set:"), strings.HasPrefix(part, "net:"), part == "id:*": // as Ingot takes them
		case part == "ignore":
			return r.skip(e.where, what, "it makes dnsmasq ignore the device: add the prefix of its MAC address to dhcp[].macDeny")
		case strings.HasPrefix(part, "tag:"):
			return r.skip(e.where, what, "it applies only to clients with a tag, which Ingot does not support")
		case strings.HasPrefix(part, "id:"):
			e.clientID = dnsmasqID(part[len("id:"):])
		case isAddress && (address.Is4() || strings.HasPrefix(part, "[") && !isHostPart(address)):
			addresses = append(addresses, address)
		case strings.HasPrefix(part, "["):
			return r.skip(e.where, what, "the address is incomplete: write all of it")
		case mac != "":
			macs = append(macs, mac)
		case strings.Contains(part, ":") || strings.Contains(part, "*"):
			return r.skip(e.where, what, fmt.Sprintf("%q is not the MAC address of one device", clip(part)))
		case i > 0 && dnsmasqTime.MatchString(part): // how long the lease is
		default:
			e.hostname = part
		}
	}
	return r.dnsmasqReserve(e, what, macs, addresses)
}

// isHostPart reports whether an address has no prefix, which dnsmasq then adds from its dhcp-range.
func isHostPart(a netip.Addr) bool {
	return netip.PrefixFrom(netip.IPv6Unspecified(), 64).Contains(a)
}

// dnsmasqReserve adds the reservations of a dhcp-host.
func (r *reader) dnsmasqReserve(e entry, what string, macs []string, addresses []netip.Addr) error {
	switch {
	case len(addresses) == 0:
		return r.skip(e.where, what, "it reserves no address")
	case len(macs)+len(e.clientID) == 0:
		return r.skip(e.where, what, "it identifies its device by the host name that the device sends, which anyone can send")
	case len(macs) > 1:
		if err := r.skip(e.where, what, fmt.Sprintf("of its %d MAC addresses the first counts: give each an Endpoint of its own", len(macs))); err != nil {
			return err
		}
	}
	if len(macs) > 0 {
		e.mac = macs[0]
	}
	for _, e.address = range addresses {
		own := e
		if own.address.Is4() && own.hostname != "" {
			if err := r.option(&own, own.where, "host-name", own.hostname); err != nil {
				return err
			}
		}
		if err := r.add(own); err != nil {
			return err
		}
	}
	return nil
}

// dnsmasqID reads a client identifier: bytes with colons, or text.
func dnsmasqID(s string) []byte {
	if strings.Contains(s, ":") {
		if id, err := keaIdentifier(s); err == nil {
			return id
		}
	}
	return []byte(s)
}
